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

/* The mean of the neighbours of one element; beyond the edges there are zeros. */
static float mean_at(const float *x, size_t m, size_t n, size_t i, size_t j) {
    float sum = 0;
    if (i > 0) sum += x[(i - 1) * n + j];
    if (i + 1 < m) sum += x[(i + 1) * n + j];
    if (j > 0) sum += x[i * n + j - 1];
    if (j + 1 < n) sum += x[i * n + j + 1];
    return 0.25f * sum;
}

void neighbours(const float *restrict x, float *restrict y, size_t m, size_t n) {
    size_t last = n - 1;
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < m; i++) {
        const float *in = x + i * n;
        float *out = y + i * n;
        int is_edge = i == 0 || i + 1 == m;
        for (size_t j = 0; is_edge && j < n; j++) out[j] = mean_at(x, m, n, i, j);
        if (is_edge) continue;
        out[0] = mean_at(x, m, n, i, 0);
#pragma omp simd
        for (size_t j = 1; j < last; j++) out[j] = 0.25f * (in[j - n] + in[j + n] + in[j - 1] + in[j + 1]);
        out[last] = mean_at(x, m, n, i, last);
    }
}

/* 3 by 3, each channel by weights of its own; beyond the edges there are zeros. */
void depthwise(const float *restrict x, const float *restrict weight, float *restrict y, size_t channels, size_t m,
               size_t n) {
    size_t last = n - 1;
#pragma omp parallel for schedule(static)
    for (size_t c = 0; c < channels; c++) {
        const float *w = weight + c * 9;
        for (size_t i = 0; i < m; i++) {
            float *out = y + (c * m + i) * n;
            for (size_t j = 0; j < n; j++) out[j] = 0;
            for (size_t a = 0; a < 3; a++) {
                if (i + a < 1 || i + a > m) continue;
                const float *in = x + (c * m + i + a - 1) * n;
                float left = w[3 * a], middle = w[3 * a + 1], right = w[3 * a + 2];
                out[0] += middle * in[0] + (n > 1 ? right * in[1] : 0);
#pragma omp simd
                for (size_t j = 1; j < last; j++) out[j] += left * in[j - 1] + middle * in[j] + right * in[j + 1];
                if (n > 1) out[last] += left * in[last - 1] + middle * in[last];
            }
        }
    }
}

/* Squared distances of each of m points from each of n, of d numbers. */
void distances(const float *restrict a, const float *restrict b, float *restrict y, size_t m, size_t n, size_t d) {
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < n; j++) {
            float sum = 0;
#pragma omp simd reduction(+ : sum)
            for (size_t k = 0; k < d; k++) {
                float apart = a[i * d + k] - b[j * d + k];
                sum += apart * apart;
            }
            y[i * n + j] = sum;
        }
}

/* y = x·w, of k rows of n; four rows at a time, and columns shared among threads. */
void row_times_matrix(const float *restrict x, const float *restrict w, float *restrict y, size_t k, size_t n) {
#pragma omp parallel
    {
        size_t threads = omp_get_num_threads(), part = (n + threads - 1) / threads;
        size_t from = omp_get_thread_num() * part, to = from + part < n ? from + part : n;
        for (size_t j = from; j < to; j++) y[j] = 0;
        size_t i = 0;
        for (; i + 4 <= k; i += 4) {
            const float *in = w + i * n;
#pragma omp simd
            for (size_t j = from; j < to; j++)
                y[j] += x[i] * in[j] + x[i + 1] * in[n + j] + x[i + 2] * in[2 * n + j] + x[i + 3] * in[3 * n + j];
        }
        for (; i < k; i++)
            for (size_t j = from; j < to; j++) y[j] += x[i] * w[i * n + j];
    }
}
