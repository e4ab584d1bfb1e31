/* The server's certificate: read from two PEM files, judged whole before it is used, and replaced while connections go on. HTTP
 * serves TLS by GnuTLS and the worker channel by OpenSSL, because the libraries below them do; both ask here at each handshake,
 * so that one reload reaches both. TLS 1.2 and 1.3 alone. */
#ifndef ORBIT_EDGE_TLS_H
#define ORBIT_EDGE_TLS_H

#include <stdint.h>

#include "base/bytes.h"
#include "base/status.h"

struct tls;

/* Reads and judges the files: a certificate with the chain that leads to its authority behind it, and its key, which must not
 * be encrypted. INVALID_ARGUMENT: a file cannot be read or is not that, or the two do not belong together; fault says which. */
enum status tls_open(const char *certificate_path, const char *key_path, struct tls **ret_tls, struct fault *fault);
/* No connection may be under way. NULL is fine. */
void tls_free(struct tls *tls);
/* Reads the same paths again: handshakes from here on show what stands there now, and connections that are there stay as they
 * are. On failure (as tls_open) nothing changes. Any thread. */
enum status tls_reload(struct tls *tls, struct fault *fault);
/* When the certificate ends, in microseconds since 1970. */
int64_t tls_not_after_us(struct tls *tls);

/* What GnuTLS is told about versions and ciphers. */
const char *tls_priorities(void);
/* The gnutls_certificate_retrieve_function3 that MHD_OPTION_HTTPS_CERT_CALLBACK2 takes gives no context; its owner finds the
 * tls and asks this. The arguments are those of that function. */
struct gnutls_pcert_st;
struct gnutls_privkey_st;
int tls_retrieve_gnutls(struct tls *tls, struct gnutls_pcert_st **ret_certificates, unsigned *ret_count,
                        struct gnutls_privkey_st **ret_key, unsigned *ret_flags);

/* Makes a context of OpenSSL (SSL_CTX) show this certificate at each handshake. tls must outlive it. */
void tls_prepare_openssl(struct tls *tls, void *ssl_context);

#endif
