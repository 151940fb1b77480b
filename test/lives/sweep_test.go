package lives_test

// A sweep is a test that repeats a run, each time with a fault at another call or with
// another changed field. "make sweep" sets SWEEP, and covers every call and every
// example. "make test" covers a sample.
