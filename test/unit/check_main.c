#include "check_main.h"

#include <stdio.h>
#include <stdlib.h>

int main(void)
{
    (void)setenv("CK_DEFAULT_TIMEOUT", "60", 0); /* check's own 4 s are too few on a busy machine */
    SRunner *runner = srunner_create(test_suite());
    srunner_run_all(runner, CK_NORMAL);
    int ran = srunner_ntests_run(runner), failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    if (ran == 0) {
        fprintf(stderr, "no check ran\n");
        return EXIT_FAILURE;
    }
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
