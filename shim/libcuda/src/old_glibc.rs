//! The functions of the C library that the library calls in their old versions: see the crate `old-glibc`. A test reads the versions
//! that the built library needs; what it finds above 2.31 belongs into this list.

::old_glibc::functions! {
    "2.2.5":
        dladdr dlclose dlerror dlopen dlsym
        pthread_attr_getguardsize pthread_attr_getstack pthread_attr_setguardsize pthread_attr_setstacksize
        pthread_create pthread_detach pthread_getattr_np pthread_getspecific pthread_join pthread_key_create
        pthread_key_delete pthread_kill pthread_mutex_trylock pthread_mutexattr_destroy pthread_mutexattr_init
        pthread_mutexattr_settype pthread_once pthread_rwlock_rdlock pthread_rwlock_unlock pthread_rwlock_wrlock
        pthread_setspecific pthread_sigmask
        sem_destroy sem_init sem_post sem_timedwait sem_trywait sem_wait;
    "2.3.3":
        dladdr1 dlinfo pthread_condattr_setclock;
    "2.3.4":
        pthread_getaffinity_np pthread_setaffinity_np;
    "2.12":
        pthread_getname_np pthread_setname_np pthread_mutex_consistent pthread_mutexattr_setrobust;
}

::old_glibc::stat! { stat64 lstat64 fstat64 fstatat64 }
