/* The two halves of a certificate that the files of tls share: one for each library. */
#ifndef ORBIT_EDGE_TLS_INTERNAL_H
#define ORBIT_EDGE_TLS_INTERNAL_H

#include <pthread.h>

#include "base/limits.h"
#include "edge/tls.h"

struct tls_gnutls;
struct tls_openssl;

struct tls {
  char *certificate_path, *key_path;
  pthread_mutex_t lock; /* guards what follows: a handshake takes copies or references under it */
  struct tls_gnutls *gnutls;
  struct tls_openssl *openssl;
  int64_t not_after_us;
};

/* What stands in the two files, with the names for messages. */
struct tls_files {
  const char *certificate_path, *key_path;
  struct bytes certificate, key;
};

/* ---- tls_gnutls.c ---- */

/* INVALID_ARGUMENT. */
enum status tls_gnutls_new(const struct tls_files *files, struct tls_gnutls **ret_gnutls, struct fault *fault);
void tls_gnutls_free(struct tls_gnutls *gnutls); /* NULL is fine; the key is wiped by the library */
int64_t tls_gnutls_not_after_us(const struct tls_gnutls *gnutls);

/* ---- tls_openssl.c ---- */

/* INVALID_ARGUMENT. */
enum status tls_openssl_new(const struct tls_files *files, struct tls_openssl **ret_openssl, struct fault *fault);
void tls_openssl_free(struct tls_openssl *openssl); /* NULL is fine */

#endif
