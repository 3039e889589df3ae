/* SPDX-License-Identifier: Apache-2.0 */
/* Marks what the shared library exports; it is built with everything else hidden. */
#ifndef RNNTUNE_EXPORT_H
#define RNNTUNE_EXPORT_H

#define RNNTUNE_EXPORT __attribute__((visibility("default")))

#endif
