"""The shared library with our kernels, by its C functions."""

import ctypes
import json


class Failure(Exception):
    """What the library says is wrong."""


class Library:
    """The library at a path. `description` are its rows."""

    def __init__(self, path):
        self.functions = ctypes.CDLL(path)
        pointer, number = ctypes.c_void_p, ctypes.c_size_t
        signatures = {
            "h200_rows": ([], ctypes.c_char_p),
            "h200_message": ([], ctypes.c_char_p),
            "h200_prepare": (
                [number, number, ctypes.c_char_p, ctypes.POINTER(ctypes.c_uint64), number, ctypes.POINTER(pointer)],
                ctypes.c_int,
            ),
            "h200_launch": ([pointer, pointer], ctypes.c_int),
            "h200_release": ([pointer], None),
        }
        for name, (arguments, result) in signatures.items():
            function = getattr(self.functions, name)
            function.argtypes, function.restype = arguments, result
        self.description = json.loads(self.functions.h200_rows())

    def _check(self, code):
        if code != 0:
            raise Failure(self.functions.h200_message().decode())

    def index(self, name):
        """The number of a row."""
        return [row["name"] for row in self.description["rows"]].index(name)

    def prepare(self, name, size, device, addresses):
        """A row of one of its sizes with tensors at these addresses; a function that runs it on a stream. The memory
        must outlive the function."""
        handle = ctypes.c_void_p()
        array = (ctypes.c_uint64 * len(addresses))(*addresses)
        code = self.functions.h200_prepare(
            self.index(name), size, device.encode(), array, len(addresses), ctypes.byref(handle)
        )
        self._check(code)
        return Prepared(self, handle)


class Prepared:
    """A row with its tensors."""

    def __init__(self, library, handle):
        self.library, self.handle = library, handle

    def __call__(self, stream=None):
        self.library._check(self.library.functions.h200_launch(self.handle, stream))

    def __del__(self):
        self.library.functions.h200_release(self.handle)
