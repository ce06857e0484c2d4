/* What a C programmer writes: plain loops over rows, vectorised by the compiler and shared among threads by OpenMP.
 * Compiled with -O3 -march=native -ffast-math -fopenmp; expf and erff are then those of the C library's vectors. */

#include <math.h>
#include <omp.h>
#include <stddef.h>

void set_threads(int threads) { omp_set_num_threads(threads); }

/* y = softmax(x * scale) of rows of n elements; x and y may be the same. */
void softmax(const float *x, float *y, size_t rows, size_t n, float scale) {
#pragma omp parallel for schedule(static)
    for (size_t row = 0; row < rows; row++) {
        const float *in = x + row * n;
        float *out = y + row * n;
        float most = -INFINITY, sum = 0;
#pragma omp simd reduction(max : most)
        for (size_t i = 0; i < n; i++) most = in[i] > most ? in[i] : most;
#pragma omp simd reduction(+ : sum)
        for (size_t i = 0; i < n; i++) {
            float weight = expf((in[i] - most) * scale);
            out[i] = weight;
            sum += weight;
        }
        float shrink = 1 / sum;
#pragma omp simd
        for (size_t i = 0; i < n; i++) out[i] *= shrink;
    }
}

void rmsnorm(const float *restrict x, const float *restrict weight, float *restrict y, size_t rows, size_t n) {
#pragma omp parallel for schedule(static)
    for (size_t row = 0; row < rows; row++) {
        const float *in = x + row * n;
        float *out = y + row * n;
        float squares = 0;
#pragma omp simd reduction(+ : squares)
        for (size_t i = 0; i < n; i++) squares += in[i] * in[i];
        float scale = 1 / sqrtf(squares / n + 1e-6f);
#pragma omp simd
        for (size_t i = 0; i < n; i++) out[i] = in[i] * scale * weight[i];
    }
}

void layernorm(const float *restrict x, const float *restrict weight, const float *restrict bias, float *restrict y,
               size_t rows, size_t n) {
#pragma omp parallel for schedule(static)
    for (size_t row = 0; row < rows; row++) {
        const float *in = x + row * n;
        float *out = y + row * n;
        float sum = 0, squares = 0;
#pragma omp simd reduction(+ : sum, squares)
        for (size_t i = 0; i < n; i++) {
            sum += in[i];
            squares += in[i] * in[i];
        }
        float mean = sum / n, scale = 1 / sqrtf(squares / n - mean * mean + 1e-5f);
#pragma omp simd
        for (size_t i = 0; i < n; i++) out[i] = (in[i] - mean) * scale * weight[i] + bias[i];
    }
}

void add(const float *restrict a, const float *restrict b, float *restrict y, size_t n) {
#pragma omp parallel for simd schedule(static)
    for (size_t i = 0; i < n; i++) y[i] = a[i] + b[i];
}

void gelu_add_mul(const float *restrict a, const float *restrict b, const float *restrict c, float *restrict y,
                  size_t n) {
#pragma omp parallel for simd schedule(static)
    for (size_t i = 0; i < n; i++) {
        float x = a[i] + b[i];
        y[i] = 0.5f * x * (1 + erff(x * 0.70710678f)) * c[i];
    }
}

/* In pieces, so that sums of many elements stay exact enough. */
void sum(const float *restrict x, float *restrict y, size_t n) {
    double all = 0;
#pragma omp parallel for schedule(static) reduction(+ : all)
    for (size_t first = 0; first < n; first += 4096) {
        size_t end = first + 4096 < n ? first + 4096 : n;
        float piece = 0;
#pragma omp simd reduction(+ : piece)
        for (size_t i = first; i < end; i++) piece += x[i];
        all += piece;
    }
    *y = (float)all;
}

/* In squares that caches hold. */
void transpose(const float *restrict x, float *restrict y, size_t m, size_t n) {
#pragma omp parallel for schedule(static) collapse(2)
    for (size_t column = 0; column < n; column += 32)
        for (size_t row = 0; row < m; row += 32)
            for (size_t j = column; j < column + 32 && j < n; j++)
                for (size_t i = row; i < row + 32 && i < m; i++) y[j * m + i] = x[i * n + j];
}
