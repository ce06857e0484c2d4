"""NumPy beside tensors of tile: arrays go over by DLPack and by files, and every value is compared.

python3 check.py LIBRARY, where LIBRARY is the example `exchange` of tile-runtime.
"""

import ctypes
import sys
import tempfile
from pathlib import Path

import numpy as np

NAME, USED = b"dltensor_versioned", b"used_dltensor_versioned"

library = ctypes.CDLL(sys.argv[1])
library.exported.restype = ctypes.c_void_p
library.taken.restype = ctypes.c_double
library.taken.argtypes = [ctypes.c_void_p, ctypes.c_bool]
library.reversed.restype = library.exchanged.restype = ctypes.c_bool

python = ctypes.pythonapi
python.PyCapsule_New.restype = ctypes.py_object
python.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
python.PyCapsule_GetPointer.restype = ctypes.c_void_p
python.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
python.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]


class Exported:
    """A tensor of the library as NumPy takes it."""

    def __init__(self, number):
        self.pointer = library.exported(number)
        assert self.pointer, number

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **_):
        return python.PyCapsule_New(self.pointer, NAME, None)


def handed_over(array):
    """The pointer that the library takes an array by, and the capsule that holds it until then."""
    capsule = array.__dlpack__(max_version=(1, 0))
    pointer = python.PyCapsule_GetPointer(capsule, NAME)
    python.PyCapsule_SetName(capsule, USED)
    return pointer


def same(actual, expected):
    assert actual.dtype == expected.dtype and actual.shape == expected.shape, (actual, expected)
    assert np.array_equal(actual, expected), (actual, expected)


checks = 0

for number, format in enumerate(["int8", "uint16", "int64", "float16", "float32", "float64"]):
    same(np.from_dlpack(Exported(number)), np.arange(24).reshape(2, 3, 4).astype(format))
    checks += 1
turned = np.from_dlpack(Exported(6))
same(turned, np.arange(24, dtype="float32").reshape(2, 3, 4).T)
assert turned.strides == (4, 16, 48), turned.strides
same(np.from_dlpack(Exported(7)), np.zeros((3, 0), dtype="float32"))
same(np.from_dlpack(Exported(8)), np.array([True, True]))
checks += 3

base = np.arange(60, dtype="float32").reshape(3, 4, 5)
for array in [base, base.transpose(2, 0, 1), base[::2, 1:, ::-1], base[1], np.broadcast_to(base[0, 0], (2, 5)).copy()]:
    expected = float((array.astype("float64").ravel() * np.arange(1, array.size + 1)).sum())
    assert library.taken(handed_over(array), False) == expected
    checks += 1

doubled = base.copy()
library.taken(handed_over(doubled[:, 1]), True)
base[:, 1] *= 2
same(doubled, base)
constant = base.copy()
constant.flags.writeable = False
library.taken(handed_over(constant), True)
same(constant, base)
assert np.isnan(library.taken(handed_over(np.arange(3)), False))
checks += 3

with tempfile.TemporaryDirectory() as folder:
    source, target = Path(folder, "source.npy"), Path(folder, "target.npy")
    for format in ["bool", "int16", "uint64", "float16", "float32", "float64"]:
        for array in [base, base.transpose(1, 2, 0), np.asfortranarray(base[0]), base[0, 0], base[0, 0, 0], base[:0]]:
            np.save(source, array.astype(format))
            assert library.reversed(format.encode(), str(source).encode(), str(target).encode())
            same(np.load(target), np.transpose(array).astype(format))
            checks += 1
    np.save(source, base.astype(">f4"))
    assert not library.reversed(b"float32", str(source).encode(), str(target).encode())
    for save in [np.savez, np.savez_compressed]:
        archive, other = Path(folder, "source.npz"), Path(folder, "target.npz")
        save(archive, a=base, b=np.arange(7))
        assert library.exchanged(str(archive).encode(), str(other).encode())
        loaded = np.load(other)
        same(loaded["a"], np.arange(7))
        same(loaded["b"], base)
        checks += 2

print(f"NumPy {np.__version__} agrees in {checks} checks")
