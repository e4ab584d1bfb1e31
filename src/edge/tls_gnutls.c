/* Owns the certificate as GnuTLS, and with it libmicrohttpd, takes it. */
#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "edge/tls_internal.h"

struct tls_gnutls {
  gnutls_x509_crt_t certificates[tls_chain_certificates_max]; /* the server's own first */
  unsigned count;
  gnutls_x509_privkey_t key;
};

const char *tls_priorities(void) { return "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:%SERVER_PRECEDENCE"; }

static gnutls_datum_t datum(struct bytes bytes) {
  return (gnutls_datum_t){(unsigned char *)(uintptr_t)bytes.data, (unsigned)bytes.size}; /* the library does not change it */
}

void tls_gnutls_free(struct tls_gnutls *gnutls) {
  if (gnutls == NULL) return;
  for (unsigned i = 0; i < gnutls->count; i++) gnutls_x509_crt_deinit(gnutls->certificates[i]);
  if (gnutls->key != NULL) gnutls_x509_privkey_deinit(gnutls->key);
  free(gnutls);
}

static enum status certificates_read(struct tls_gnutls *gnutls, const struct tls_files *files, struct fault *fault) {
  gnutls_datum_t text = datum(files->certificate);
  unsigned count = tls_chain_certificates_max;
  int result = gnutls_x509_crt_list_import(gnutls->certificates, &count, &text, GNUTLS_X509_FMT_PEM,
                                           GNUTLS_X509_CRT_LIST_IMPORT_FAIL_IF_EXCEED);
  if (result == GNUTLS_E_SHORT_MEMORY_BUFFER)
    return fault_set(fault, STATUS_INVALID_ARGUMENT, "tls-cert", "--tls-cert: %s holds more than %d certificates",
                     files->certificate_path, tls_chain_certificates_max);
  if (result <= 0)
    return fault_set(fault, STATUS_INVALID_ARGUMENT, "tls-cert", "--tls-cert: %s holds no certificate in PEM: %s",
                     files->certificate_path, gnutls_strerror(result));
  gnutls->count = (unsigned)result;
  return STATUS_OK;
}

static enum status key_read(struct tls_gnutls *gnutls, const struct tls_files *files, struct fault *fault) {
  gnutls_datum_t text = datum(files->key);
  int result = gnutls_x509_privkey_init(&gnutls->key);
  if (result >= 0) result = gnutls_x509_privkey_import2(gnutls->key, &text, GNUTLS_X509_FMT_PEM, NULL, 0);
  if (result == GNUTLS_E_DECRYPTION_FAILED)
    return fault_set(fault, STATUS_INVALID_ARGUMENT, "tls-key",
                     "--tls-key: %s is encrypted; Orbit needs a key without a passphrase", files->key_path);
  if (result < 0)
    return fault_set(fault, STATUS_INVALID_ARGUMENT, "tls-key", "--tls-key: %s holds no private key in PEM: %s",
                     files->key_path, gnutls_strerror(result));
  return STATUS_OK;
}

static enum status pair_judge(const struct tls_gnutls *gnutls, const struct tls_files *files, struct fault *fault) {
  unsigned char of_certificate[64], of_key[64];
  size_t certificate_size = sizeof of_certificate, key_size = sizeof of_key;
  if (gnutls_x509_crt_get_key_id(gnutls->certificates[0], GNUTLS_KEYID_USE_SHA256, of_certificate, &certificate_size) == 0 &&
      gnutls_x509_privkey_get_key_id(gnutls->key, GNUTLS_KEYID_USE_SHA256, of_key, &key_size) == 0 &&
      certificate_size == key_size && memcmp(of_certificate, of_key, key_size) == 0)
    return STATUS_OK;
  return fault_set(fault, STATUS_INVALID_ARGUMENT, "tls-key",
                   "--tls-key: the key in %s does not belong to the first certificate in %s", files->key_path,
                   files->certificate_path);
}

enum status tls_gnutls_new(const struct tls_files *files, struct tls_gnutls **ret_gnutls, struct fault *fault) {
  struct tls_gnutls *gnutls = guard_calloc(1, sizeof *gnutls);
  enum status status = certificates_read(gnutls, files, fault);
  if (status == STATUS_OK) status = key_read(gnutls, files, fault);
  if (status == STATUS_OK) status = pair_judge(gnutls, files, fault);
  if (status == STATUS_OK) *ret_gnutls = gnutls;
  else tls_gnutls_free(gnutls);
  return status;
}

int64_t tls_gnutls_not_after_us(const struct tls_gnutls *gnutls) {
  return (int64_t)gnutls_x509_crt_get_expiration_time(gnutls->certificates[0]) * 1000000;
}

/* Copies for one handshake, which frees them itself: the certificate may be replaced while the handshake goes on. */
static int copy(const struct tls_gnutls *gnutls, gnutls_pcert_st *certificates, unsigned *count, gnutls_privkey_t *key) {
  for (*count = 0; *count < gnutls->count; (*count)++) {
    int result = gnutls_pcert_import_x509(&certificates[*count], gnutls->certificates[*count], 0);
    if (result < 0) return result;
  }
  int result = gnutls_privkey_init(key);
  return result < 0 ? result : gnutls_privkey_import_x509(*key, gnutls->key, GNUTLS_PRIVKEY_IMPORT_COPY);
}

int tls_retrieve_gnutls(struct tls *tls, struct gnutls_pcert_st **ret_certificates, unsigned *ret_count,
                        struct gnutls_privkey_st **ret_key, unsigned *ret_flags) {
  gnutls_pcert_st *certificates = gnutls_calloc(tls_chain_certificates_max, sizeof *certificates);
  if (certificates == NULL) return -1;
  gnutls_privkey_t key = NULL;
  unsigned count;
  must(pthread_mutex_lock(&tls->lock) == 0);
  int result = copy(tls->gnutls, certificates, &count, &key);
  must(pthread_mutex_unlock(&tls->lock) == 0);
  if (result < 0) {
    while (count > 0) gnutls_pcert_deinit(&certificates[--count]);
    if (key != NULL) gnutls_privkey_deinit(key);
    gnutls_free(certificates);
    return -1;
  }
  *ret_certificates = certificates;
  *ret_count = count;
  *ret_key = key;
  *ret_flags = GNUTLS_CERT_RETR_DEINIT_ALL;
  return 0;
}
