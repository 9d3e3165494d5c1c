/* What C programs of the test bench say and expect: a call that gives anything else ends the program, with its line. */
#ifndef CHECK_H
#define CHECK_H
#include <stdio.h>
#include <unistd.h>

/* Who says it, as arguments of printf, where that is not only the line. */
#ifndef SAYS
#define SAYS "line %d: ", __LINE__
#endif

#define DIE(...)                      \
    do {                              \
        fprintf(stderr, SAYS);        \
        fprintf(stderr, __VA_ARGS__); \
        fputc('\n', stderr);          \
        fflush(NULL);                 \
        _exit(1);                     \
    } while (0)

#define GIVES(wanted, call)                                                                  \
    do {                                                                                     \
        int result_ = (int)(call), wanted_ = (int)(wanted);                                  \
        if (result_ != wanted_) DIE("%s gives %d, not %d", #call, result_, wanted_);         \
    } while (0)

#define OK(call) GIVES(0, call)

#endif
