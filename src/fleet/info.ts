/** A whole number of an engine's answer to INFO, such as `used_memory`; 0 where the engine does not tell it. */
export function numberIn(info: string, field: string): number {
  return Number(new RegExp(`^${field}:(-?\\d+)`, 'm').exec(info)?.[1] ?? 0)
}

/** How much of its memory bound an engine uses, bytes: what it holds without the buffers that do not count. */
export function usedBytesIn(info: string): number {
  return numberIn(info, 'used_memory') - numberIn(info, 'mem_not_counted_for_evict')
}
