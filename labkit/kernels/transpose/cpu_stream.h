// cpu_stream.h: whole cache lines written straight to memory (rungs 0 and 4)
// A plain store first reads the line that it is about to overwrite, a third of all the traffic of a copy, and
// puts it in the cache, where nobody needs it. A streaming store does neither, if it fills the whole line.
#include <stdint.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif
#define LINE 64 // bytes

#if defined(__AVX512F__)
typedef __m512i word;
#define STREAM _mm512_stream_si512
#elif defined(__AVX__)
typedef __m256i word;
#define STREAM _mm256_stream_si256
#elif defined(__x86_64__)
typedef __m128i word;
#define STREAM _mm_stream_si128
#endif

// Copy `bytes` bytes; whole lines at the beginning of a line are streamed, anything else is written as usual.
static inline void stream(void *restrict out, const void *restrict in, size_t bytes)
{
#if defined(STREAM)
    if ((uintptr_t)out % LINE == 0 && bytes % LINE == 0) {
        for (size_t i = 0; i < bytes; i += sizeof(word)) {
            word part;
            memcpy(&part, (const char *)in + i, sizeof(word));
            STREAM((word *)((char *)out + i), part);
        }
        return;
    }
#endif
    memcpy(out, in, bytes);
}
