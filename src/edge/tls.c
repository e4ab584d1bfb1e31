/* Owns the certificate in use: reading its files, and putting a new one in the place of the old. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/guard.h"
#include "edge/tls_internal.h"

/* The whole file, in memory that is taken once, so that a key leaves no copies behind. */
static enum status file_read(const char *option, const char *path, struct buffer *text, struct fault *fault) {
  cleanup(guard_close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat info;
  if (fd < 0 || fstat(fd, &info) != 0)
    return fault_set(fault, STATUS_INVALID_ARGUMENT, option, "--%s: %s cannot be read: %s", option, path, strerror(errno));
  if (!S_ISREG(info.st_mode)) return fault_set(fault, STATUS_INVALID_ARGUMENT, option, "--%s: %s is no file", option, path);
  uint8_t *room = buffer_reserve(text, tls_file_bytes_max + 1);
  must(room != NULL);
  size_t size = 0;
  while (size <= tls_file_bytes_max) {
    ssize_t got = read(fd, room + size, tls_file_bytes_max + 1 - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0)
      return fault_set(fault, STATUS_INVALID_ARGUMENT, option, "--%s: %s cannot be read: %s", option, path, strerror(errno));
    if (got == 0) break;
    size += (size_t)got;
  }
  if (size > tls_file_bytes_max)
    return fault_set(fault, STATUS_INVALID_ARGUMENT, option, "--%s: %s is larger than %d bytes", option, path,
                     tls_file_bytes_max);
  buffer_commit(text, size);
  return STATUS_OK;
}

static void buffer_wipe(struct buffer *buffer) {
  if (buffer->data != NULL) explicit_bzero(buffer->data, buffer->capacity);
  buffer_clear(buffer);
}

static enum status load(const struct tls *tls, struct tls_gnutls **ret_gnutls, struct tls_openssl **ret_openssl,
                        struct fault *fault) {
  cleanup(buffer_clear) struct buffer certificate;
  cleanup(buffer_wipe) struct buffer key;
  buffer_init(&certificate, 2 * tls_file_bytes_max);
  buffer_init(&key, 2 * tls_file_bytes_max);
  enum status status = file_read("tls-cert", tls->certificate_path, &certificate, fault);
  if (status == STATUS_OK) status = file_read("tls-key", tls->key_path, &key, fault);
  if (status != STATUS_OK) return status;
  const struct tls_files files = {tls->certificate_path, tls->key_path, buffer_bytes(&certificate), buffer_bytes(&key)};
  struct tls_gnutls *gnutls = NULL;
  struct tls_openssl *openssl = NULL;
  status = tls_gnutls_new(&files, &gnutls, fault);
  if (status == STATUS_OK) status = tls_openssl_new(&files, &openssl, fault);
  if (status != STATUS_OK) {
    tls_gnutls_free(gnutls);
    return status;
  }
  *ret_gnutls = gnutls;
  *ret_openssl = openssl;
  return STATUS_OK;
}

static char *text_copy(const char *text) {
  size_t size = strlen(text) + 1;
  return memcpy(guard_malloc(size), text, size);
}

enum status tls_reload(struct tls *tls, struct fault *fault) {
  struct tls_gnutls *gnutls;
  struct tls_openssl *openssl;
  enum status status = load(tls, &gnutls, &openssl, fault);
  if (status != STATUS_OK) return status;
  must(pthread_mutex_lock(&tls->lock) == 0);
  struct tls_gnutls *old_gnutls = tls->gnutls;
  struct tls_openssl *old_openssl = tls->openssl;
  tls->gnutls = gnutls;
  tls->openssl = openssl;
  tls->not_after_us = tls_gnutls_not_after_us(gnutls);
  must(pthread_mutex_unlock(&tls->lock) == 0);
  tls_gnutls_free(old_gnutls);
  tls_openssl_free(old_openssl);
  return STATUS_OK;
}

enum status tls_open(const char *certificate_path, const char *key_path, struct tls **ret_tls, struct fault *fault) {
  struct tls *tls = guard_calloc(1, sizeof *tls);
  must(pthread_mutex_init(&tls->lock, NULL) == 0);
  tls->certificate_path = text_copy(certificate_path);
  tls->key_path = text_copy(key_path);
  enum status status = tls_reload(tls, fault);
  if (status == STATUS_OK) *ret_tls = tls;
  else tls_free(tls);
  return status;
}

void tls_free(struct tls *tls) {
  if (tls == NULL) return;
  tls_gnutls_free(tls->gnutls);
  tls_openssl_free(tls->openssl);
  free(tls->certificate_path);
  free(tls->key_path);
  (void)pthread_mutex_destroy(&tls->lock);
  free(tls);
}

int64_t tls_not_after_us(struct tls *tls) {
  must(pthread_mutex_lock(&tls->lock) == 0);
  int64_t not_after_us = tls->not_after_us;
  must(pthread_mutex_unlock(&tls->lock) == 0);
  return not_after_us;
}
