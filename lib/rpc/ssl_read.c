/* SSL_read() of the whole program, in place of OpenSSL's. The frames of a client are metered when they are deciphered
 * (connection_guard.h). */
#include <dlfcn.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/mem.h"
#include "rpc/connection_guard.h"
#include "rpc/ssl_read.h"

typedef int read_function(SSL *ssl, void *bytes, int size);

static read_function *next;
static int meter_slot = -1; /* of a connection's extra data */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void ssl_read_free_meter(void *ssl, void *meter, CRYPTO_EX_DATA *data, int slot, long unused, void *user)
{
    (void)ssl, (void)data, (void)slot, (void)unused, (void)user;
    free(meter);
}

static void ssl_read_find(void)
{
    *(void **)&next = dlsym(RTLD_NEXT, "SSL_read");
    meter_slot = SSL_get_ex_new_index(0, NULL, NULL, NULL, ssl_read_free_meter);
    if (next == NULL)
        abort(); /* this function is only called where there is OpenSSL */
}

void ssl_read_begin(void)
{
    pthread_once(&once, ssl_read_find);
}

/* NULL: the connection is not metered. */
static struct frame_meter *ssl_read_meter(SSL *ssl)
{
    if (!SSL_is_server(ssl) || meter_slot < 0)
        return NULL;
    struct frame_meter *m = SSL_get_ex_data(ssl, meter_slot);
    if (m != NULL)
        return m;
    m = xcalloc(1, sizeof(*m));
    frame_meter_init(m);
    if (SSL_set_ex_data(ssl, meter_slot, m) == 1)
        return m;
    free(m);
    return NULL;
}

/* As <openssl/ssl.h> declares it. */
__attribute__((visibility("default"))) int SSL_read(SSL *ssl, void *bytes, int size)
{
    ssl_read_begin();
    int n = next(ssl, bytes, size);
    struct frame_meter *m = n > 0 ? ssl_read_meter(ssl) : NULL;
    return m == NULL || connection_guard_add(m, bytes, (size_t)n) ? n : -1; /* SSL_get_error() says SSL_ERROR_SYSCALL */
}
