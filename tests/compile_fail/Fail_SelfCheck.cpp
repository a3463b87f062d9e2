// That a compile-fail test passes when the error is given, and only then, is seen on this smallest one.
#ifdef MICROSCALE_COMPILE_FAIL
static_assert(sizeof(char) == 2, "the reason is given");
#else
static_assert(sizeof(char) == 1, "the reason is given");
#endif
