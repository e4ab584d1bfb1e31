/* Owns the client's side of TLS in the load programs. */
#include "load/secure.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static SSL_CTX *shared; /* set once; NULL: it could not be made */

static void shared_make(void) {
  const char *file = getenv("ORBIT_CA_FILE");
  SSL_CTX *context = SSL_CTX_new(TLS_client_method());
  if (context == NULL) return;
  int loaded =
      file != NULL && file[0] != 0 ? SSL_CTX_load_verify_file(context, file) : SSL_CTX_set_default_verify_paths(context);
  if (loaded != 1 || SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) != 1) {
    (void)fprintf(stderr, "the authorities of %s cannot be read\n", file != NULL ? file : "the system");
    SSL_CTX_free(context);
    return;
  }
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
  (void)SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  shared = context;
}

static bool expect_host(SSL *ssl, const char *host) {
  struct in6_addr address;
  if (inet_pton(AF_INET, host, &address) == 1 || inet_pton(AF_INET6, host, &address) == 1)
    return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1;
  return SSL_set1_host(ssl, host) == 1 && SSL_set_tlsext_host_name(ssl, host) == 1;
}

/* The session is OpenSSL's own structure by another name. */
static SSL *session(struct secure *secure) { return (SSL *)(void *)secure; }

struct secure *secure_new(int fd, const char *host) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  (void)pthread_once(&once, shared_make);
  SSL *ssl = shared != NULL ? SSL_new(shared) : NULL;
  if (ssl == NULL) return NULL;
  if (expect_host(ssl, host) && SSL_set_fd(ssl, fd) == 1) {
    SSL_set_connect_state(ssl);
    return (struct secure *)(void *)ssl;
  }
  SSL_free(ssl);
  return NULL;
}

void secure_free(struct secure *secure) { SSL_free(session(secure)); }

enum secure_result secure_handshake(struct secure *secure) {
  static atomic_flag said = ATOMIC_FLAG_INIT;
  ERR_clear_error();
  int result = SSL_do_handshake(session(secure));
  if (result == 1) return SECURE_DONE;
  int error = SSL_get_error(session(secure), result);
  if (error == SSL_ERROR_WANT_READ) return SECURE_READS;
  if (error == SSL_ERROR_WANT_WRITE) return SECURE_WRITES;
  const char *reason = ERR_reason_error_string(ERR_peek_last_error());
  long verified = SSL_get_verify_result(session(secure));
  if (!atomic_flag_test_and_set(&said))
    (void)fprintf(stderr, "TLS: %s%s%s\n", reason != NULL ? reason : "the connection ended", verified != X509_V_OK ? ": " : "",
                  verified != X509_V_OK ? X509_verify_cert_error_string(verified) : "");
  return SECURE_BROKEN;
}

size_t secure_send(struct secure *secure, const void *data, size_t size) {
  size_t sent = 0;
  ERR_clear_error();
  return size > 0 && SSL_write_ex(session(secure), data, size, &sent) == 1 ? sent : 0;
}

long secure_receive(struct secure *secure, void *out, size_t size) {
  size_t got = 0;
  ERR_clear_error();
  if (SSL_read_ex(session(secure), out, size, &got) == 1) return (long)got;
  int error = SSL_get_error(session(secure), 0);
  return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE ? -1 : 0;
}
