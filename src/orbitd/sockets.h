/* Listening sockets: bound before anything is read, so that a port in use changes nothing. */
#ifndef ORBIT_ORBITD_SOCKETS_H
#define ORBIT_ORBITD_SOCKETS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

/* Listens on "ADDR:PORT" ("[::1]:8080" for IPv6; port 0: any free one). The socket is non-blocking and close-on-exec.
 * INVALID_ARGUMENT: not of this form, or beyond loopback without allow_beyond_loopback. IO_ERROR: in use, not allowed … name is
 * the option's, for messages. */
enum status socket_listen(const char *name, const char *address, bool allow_beyond_loopback, int *ret_fd, struct fault *fault);
/* Judges the address as socket_listen does, and opens nothing. INVALID_ARGUMENT. */
enum status socket_judge(const char *name, const char *address, bool allow_beyond_loopback, struct fault *fault);
/* Judges a socket that systemd handed over, likewise; one of another kind than TCP is local. INVALID_ARGUMENT. */
enum status socket_judge_activated(const char *name, int fd, bool allow_beyond_loopback, struct fault *fault);
/* The address that the socket is bound to, as "ADDR:PORT". */
void socket_address(int fd, char *out, size_t size);
/* Sockets handed over by systemd (LISTEN_FDNAMES http and worker, or in that order): -1 where there is none. */
void socket_activated(int *ret_http_fd, int *ret_worker_fd);

#endif
