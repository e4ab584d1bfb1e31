/* The four kinds of address that liborbit takes: http, https, ws, wss. */
#ifndef ORBIT_SDK_URL_H
#define ORBIT_SDK_URL_H

#include <stdbool.h>
#include <stdint.h>

enum { url_host_bytes = 256, url_path_bytes = 1024 };

struct sdk_url {
  bool websocket;            /* ws or wss */
  bool tls;                  /* https or wss */
  bool host_is_ipv6;         /* brackets are needed where it is written */
  uint16_t port;             /* the scheme's where none is given */
  char host[url_host_bytes]; /* without brackets */
  char path[url_path_bytes]; /* "/" where none is given; no trailing "/" otherwise */
};

/* False: another scheme, no host, a port that is none, user information, a query, a fragment, or characters that do not belong.
 */
bool sdk_url_parse(const char *text, struct sdk_url *ret_url);
/* "host:port", with brackets where needed, into out of url_host_bytes + 16 bytes. */
enum { url_authority_bytes = url_host_bytes + 16 };
void sdk_url_authority(const struct sdk_url *url, char out[url_authority_bytes]);
/* True for 0.0.0.0, :: and the like: an address to listen on, not to connect to. */
bool sdk_url_is_wildcard(const struct sdk_url *url);

#endif
