/* Owns the reading of addresses. */
#include "url.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

struct scheme {
  const char *prefix;
  bool websocket, tls;
  uint16_t port;
};

static const struct scheme schemes[] = {
    {"http://", false, false, 80},
    {"https://", false, true, 443},
    {"ws://", true, false, 80},
    {"wss://", true, true, 443},
};

static const struct scheme *scheme_find(const char *text) {
  for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
    if (strncasecmp(text, schemes[i].prefix, strlen(schemes[i].prefix)) == 0) return &schemes[i];
  }
  return NULL;
}

static bool port_parse(const char *text, size_t size, uint16_t *ret_port) {
  uint32_t port = 0;
  if (size == 0 || size > 5) return false;
  for (size_t i = 0; i < size; i++) {
    if (!isdigit((unsigned char)text[i])) return false;
    port = port * 10 + (uint32_t)(text[i] - '0');
  }
  if (port == 0 || port > UINT16_MAX) return false;
  *ret_port = (uint16_t)port;
  return true;
}

static bool host_parse(const char *text, size_t size, bool ipv6, struct sdk_url *url) {
  if (size == 0 || size >= sizeof url->host) return false;
  for (size_t i = 0; i < size; i++) {
    unsigned char c = (unsigned char)text[i];
    bool fits = ipv6 ? isxdigit(c) || c == ':' || c == '.' : isalnum(c) || c == '.' || c == '-' || c == '_';
    if (!fits) return false;
  }
  memcpy(url->host, text, size);
  url->host[size] = '\0';
  url->host_is_ipv6 = ipv6;
  return true;
}

/* [host] or host, then :port or nothing. */
static bool authority_parse(const char *text, size_t size, struct sdk_url *url) {
  const char *end = text + size, *colon;
  if (size > 0 && text[0] == '[') {
    const char *bracket = memchr(text, ']', size);
    if (bracket == NULL || !host_parse(text + 1, (size_t)(bracket - text) - 1, true, url)) return false;
    colon = bracket + 1;
    if (colon == end) return true;
    if (*colon != ':') return false;
  } else {
    colon = memchr(text, ':', size);
    if (!host_parse(text, (size_t)((colon != NULL ? colon : end) - text), false, url)) return false;
    if (colon == NULL) return true;
  }
  return port_parse(colon + 1, (size_t)(end - colon) - 1, &url->port);
}

bool sdk_url_parse(const char *text, struct sdk_url *ret_url) {
  if (text == NULL) return false;
  const struct scheme *scheme = scheme_find(text);
  if (scheme == NULL) return false;
  struct sdk_url url = {.websocket = scheme->websocket, .tls = scheme->tls, .port = scheme->port};
  const char *authority = text + strlen(scheme->prefix);
  size_t authority_size = strcspn(authority, "/");
  if (!authority_parse(authority, authority_size, &url)) return false;

  const char *path = authority + authority_size;
  size_t size = strnlen(path, sizeof url.path);
  if (size == sizeof url.path) return false;
  for (size_t i = 0; i < size; i++) {
    if (path[i] < 0x21 || path[i] > 0x7E || path[i] == '?' || path[i] == '#') return false;
  }
  while (size > 0 && path[size - 1] == '/') size--;
  memcpy(url.path, size > 0 ? path : "/", size > 0 ? size : 1);
  url.path[size > 0 ? size : 1] = '\0';
  *ret_url = url;
  return true;
}

void sdk_url_authority(const struct sdk_url *url, char out[url_authority_bytes]) {
  (void)snprintf(out, url_authority_bytes, url->host_is_ipv6 ? "[%s]:%u" : "%s:%u", url->host, (unsigned)url->port);
}

bool sdk_url_is_wildcard(const struct sdk_url *url) {
  return strcmp(url->host, "0.0.0.0") == 0 || (url->host_is_ipv6 && url->host[strspn(url->host, "0:")] == '\0');
}
