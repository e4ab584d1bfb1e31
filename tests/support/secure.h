/* TLS in tests: certificates made on the spot by openssl(1), and a blocking client that trusts what it is told to. */
#ifndef ORBIT_TESTS_SECURE_H
#define ORBIT_TESTS_SECURE_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/support.h"

/* Runs openssl with these arguments (words for a shell). */
__attribute__((format(printf, 1, 2))) static inline void openssl_run(const char *format, ...) {
  char arguments[2048], command[2200];
  va_list list;
  va_start(list, format);
  (void)vsnprintf(arguments, sizeof arguments, format, list);
  va_end(list);
  (void)snprintf(command, sizeof command, "openssl %s </dev/null 2>&1", arguments);
  FILE *out = popen(command, "r"); /* what it says is shown when it fails */
  assert_non_null(out);
  char said[4096];
  size_t size = fread(said, 1, sizeof said - 1, out);
  said[size] = '\0';
  if (pclose(out) != 0) fail_msg("openssl %s: %s", arguments, said);
}

/* DIRECTORY/NAME.crt and .key: for 127.0.0.1 and localhost, signed by itself. algorithm: what -newkey takes. */
static inline void certificate_make_for(const char *directory, const char *name, const char *algorithm, int days) {
  openssl_run(
      "req -x509 -newkey %s -nodes -days %d -subj /CN=%s -addext subjectAltName=IP:127.0.0.1,DNS:localhost "
      "-keyout '%s/%s.key' -out '%s/%s.crt'",
      algorithm, days, name, directory, name, directory, name);
}
static inline void certificate_make(const char *directory, const char *name, const char *algorithm) {
  certificate_make_for(directory, name, algorithm, 2);
}
#define SMALL_KEY "ec -pkeyopt ec_paramgen_curve:P-256"

struct secure_client {
  int fd;
  SSL_CTX *context;
  SSL *ssl;
  char subject[64]; /* of the certificate that the server showed: its CN */
};

static inline int secure_client_socket(uint16_t port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(port)};
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const struct timeval patience = {.tv_sec = 30};
  assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
  assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
  return fd;
}

static inline void secure_client_close(struct secure_client *client) {
  SSL_free(client->ssl);
  SSL_CTX_free(client->context);
  (void)close(client->fd);
  *client = (struct secure_client){.fd = -1};
}

/* Shakes hands with whoever listens there; version 0: any, else that one alone. False: no handshake came about, and all is
 * closed. */
static inline bool secure_client_open(struct secure_client *client, uint16_t port, const char *authority, int version) {
  *client = (struct secure_client){.fd = secure_client_socket(port), .context = SSL_CTX_new(TLS_client_method())};
  assert_non_null(client->context);
  SSL_CTX_set_security_level(client->context, 0); /* so that old versions are refused by the server, not by the client */
  if (version != 0) {
    assert_int_equal(SSL_CTX_set_min_proto_version(client->context, version), 1);
    assert_int_equal(SSL_CTX_set_max_proto_version(client->context, version), 1);
  }
  assert_int_equal(SSL_CTX_load_verify_file(client->context, authority), 1);
  SSL_CTX_set_verify(client->context, SSL_VERIFY_PEER, NULL);
  client->ssl = SSL_new(client->context);
  assert_int_equal(SSL_set_fd(client->ssl, client->fd), 1);
  if (SSL_connect(client->ssl) != 1) {
    secure_client_close(client);
    return false;
  }
  X509 *certificate = SSL_get1_peer_certificate(client->ssl);
  (void)X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, client->subject, sizeof client->subject);
  X509_free(certificate);
  return true;
}

static inline void secure_client_send(struct secure_client *client, const char *text) {
  assert_int_equal(SSL_write(client->ssl, text, (int)strlen(text)), (int)strlen(text));
}

/* Reads until the text has come, or the connection ends; NUL-terminated. True: it came. */
static inline bool secure_client_receive(struct secure_client *client, const char *until, char *out, size_t size) {
  size_t filled = 0;
  for (;;) {
    out[filled] = '\0';
    if (until != NULL && strstr(out, until) != NULL) return true;
    assert_true(filled + 1 < size);
    int got = SSL_read(client->ssl, out + filled, (int)(size - 1 - filled));
    if (got <= 0) return false;
    filled += (size_t)got;
  }
}

#endif
