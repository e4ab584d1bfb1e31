/* Owns the certificate as OpenSSL, and with it libwebsockets, takes it. */
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <stdlib.h>

#include "base/guard.h"
#include "edge/tls_internal.h"

struct tls_openssl {
  X509 *certificate;
  STACK_OF(X509) * chain; /* what stands behind it in the file */
  EVP_PKEY *key;
};

void tls_openssl_free(struct tls_openssl *openssl) {
  if (openssl == NULL) return;
  X509_free(openssl->certificate);
  sk_X509_pop_free(openssl->chain, X509_free);
  EVP_PKEY_free(openssl->key);
  free(openssl);
}

/* Instead of asking at the terminal. */
static int no_passphrase(char *out, int size, int writing, void *context) {
  (void)out, (void)size, (void)writing, (void)context;
  return 0;
}

static bool certificates_read(struct tls_openssl *openssl, struct bytes text) {
  BIO *bio = BIO_new_mem_buf(text.data, (int)text.size);
  if (bio == NULL) return false;
  openssl->certificate = PEM_read_bio_X509(bio, NULL, no_passphrase, NULL);
  openssl->chain = sk_X509_new_null();
  X509 *next = NULL;
  bool good = openssl->certificate != NULL && openssl->chain != NULL;
  while (good && (next = PEM_read_bio_X509(bio, NULL, no_passphrase, NULL)) != NULL)
    good = sk_X509_push(openssl->chain, next) > 0;
  if (!good) X509_free(next);
  (void)BIO_free(bio);
  return good;
}

static bool key_read(struct tls_openssl *openssl, struct bytes text) {
  BIO *bio = BIO_new_mem_buf(text.data, (int)text.size);
  if (bio == NULL) return false;
  openssl->key = PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, NULL);
  (void)BIO_free(bio);
  return openssl->key != NULL;
}

/* Whether a server would take the pair: that the key fits, and that neither is too weak. */
static bool is_accepted(const struct tls_openssl *openssl) {
  SSL_CTX *context = SSL_CTX_new(TLS_server_method());
  bool good = context != NULL && SSL_CTX_use_certificate(context, openssl->certificate) == 1 &&
              SSL_CTX_use_PrivateKey(context, openssl->key) == 1 && SSL_CTX_check_private_key(context) == 1 &&
              SSL_CTX_set1_chain(context, openssl->chain) == 1;
  SSL_CTX_free(context);
  return good;
}

enum status tls_openssl_new(const struct tls_files *files, struct tls_openssl **ret_openssl, struct fault *fault) {
  struct tls_openssl *openssl = guard_calloc(1, sizeof *openssl);
  ERR_clear_error();
  enum status status = STATUS_OK;
  const char *option = "tls-cert", *path = files->certificate_path;
  bool good = certificates_read(openssl, files->certificate);
  if (good) ERR_clear_error(); /* of the end of the file */
  if (good && !(good = key_read(openssl, files->key))) option = "tls-key", path = files->key_path;
  if (good) good = is_accepted(openssl);
  if (!good) {
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());
    status = fault_set(fault, STATUS_INVALID_ARGUMENT, option, "--%s: %s cannot be used: %s", option, path,
                       reason != NULL ? reason : "OpenSSL gives no reason");
  }
  ERR_clear_error();
  if (good) *ret_openssl = openssl;
  else tls_openssl_free(openssl);
  return status;
}

/* At each handshake; the connection takes references of its own. */
static int on_certificate(SSL *ssl, void *context) {
  struct tls *tls = context;
  must(pthread_mutex_lock(&tls->lock) == 0);
  const struct tls_openssl *openssl = tls->openssl;
  SSL_certs_clear(ssl);
  int good = SSL_use_certificate(ssl, openssl->certificate) == 1 && SSL_use_PrivateKey(ssl, openssl->key) == 1 &&
             SSL_set1_chain(ssl, openssl->chain) == 1;
  must(pthread_mutex_unlock(&tls->lock) == 0);
  return good;
}

void tls_prepare_openssl(struct tls *tls, void *ssl_context) {
  SSL_CTX *context = ssl_context;
  must(SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1);
  /* No session is resumed: a certificate that was replaced must not live on in tickets. */
  (void)SSL_CTX_set_options(
      context, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_NO_COMPRESSION);
  (void)SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  (void)SSL_CTX_set_num_tickets(context, 0);
  SSL_CTX_set_cert_cb(context, on_certificate, tls);
}
