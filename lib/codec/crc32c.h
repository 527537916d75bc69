/* crc32c - CRC-32C (Castagnoli, reflected 0x82F63B78) and TensorFlow's masked form.
 * crc32c(0, "123456789", 9) == 0xe3069283, masked 0xc78ab0e5. Hardware instruction where there is one. */
#ifndef TRAINYARD_CODEC_CRC32C_H
#define TRAINYARD_CODEC_CRC32C_H

#include <stddef.h>
#include <stdint.h>

uint32_t crc32c(uint32_t crc, const void *data, size_t n); /* crc of what came before, 0 to begin */
/* The same without special instructions (a test compares them). */
uint32_t crc32c_portable(uint32_t crc, const void *data, size_t n);
uint32_t crc32c_mask(uint32_t crc);
uint32_t crc32c_unmask(uint32_t masked);

#endif
