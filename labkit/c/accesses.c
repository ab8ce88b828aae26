// Behind a student's matmul: labkit_traced calls it and writes down which cache lines it uses, one after the other.
// Compiled so that each access of the student's code calls one of the functions below.
#define LABKIT_OURS __attribute__((no_sanitize("kernel-address")))
enum { LABKIT_LINE = 64, LABKIT_MATRIX = 1 << 28 }; // bytes; line numbers between two matrices

static struct {
    const char *start, *end;
} labkit_matrix[3]; // A, C, B
static unsigned *labkit_lines, labkit_last;
static long labkit_used, labkit_most;

LABKIT_OURS static void labkit_use(const char *byte)
{
    for (int m = 0; m < 3; ++m)
        if (byte >= labkit_matrix[m].start && byte < labkit_matrix[m].end) {
            unsigned line = m * LABKIT_MATRIX + (byte - labkit_matrix[m].start) / LABKIT_LINE;
            if (line != labkit_last && labkit_used < labkit_most)
                labkit_lines[labkit_used++] = labkit_last = line;
        }
}

LABKIT_OURS static void labkit_access(const char *from, unsigned long bytes)
{
    for (unsigned long at = 0; at < bytes; at += LABKIT_LINE)
        labkit_use(from + at);
    if (bytes)
        labkit_use(from + bytes - 1);
}

#define LABKIT_SIZE(BYTES) \
    LABKIT_OURS void __asan_load##BYTES##_noabort(void *from) { labkit_access(from, BYTES); } \
    LABKIT_OURS void __asan_store##BYTES##_noabort(void *to) { labkit_access(to, BYTES); }
LABKIT_SIZE(1) LABKIT_SIZE(2) LABKIT_SIZE(4) LABKIT_SIZE(8) LABKIT_SIZE(16)
LABKIT_OURS void __asan_loadN_noabort(void *from, unsigned long bytes) { labkit_access(from, bytes); }
LABKIT_OURS void __asan_storeN_noabort(void *to, unsigned long bytes) { labkit_access(to, bytes); }
LABKIT_OURS void __asan_handle_no_return(void) {}

LABKIT_OURS void labkit_traced(float *A, float *B, float *C, int M, int N, int K, unsigned *lines, long most,
                               long *used)
{
    labkit_matrix[0].start = (char *)A, labkit_matrix[0].end = (char *)(A + (long)M * K);
    labkit_matrix[1].start = (char *)C, labkit_matrix[1].end = (char *)(C + (long)M * N);
    labkit_matrix[2].start = (char *)B, labkit_matrix[2].end = (char *)(B + (long)K * N);
    labkit_lines = lines, labkit_last = ~0u, labkit_used = 0, labkit_most = most;
    __typeof__(matmul) *volatile student = matmul; // which must not become a part of this function
    student(A, B, C, M, N, K);
    *used = labkit_used;
}
