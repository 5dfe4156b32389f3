import { readFileSync } from 'node:fs'

/** How many files, connections included, this process may have open; `undefined` where the system does not tell. */
export function mostOpenFiles(): number | undefined {
  try {
    const most = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1]
    return most === undefined ? undefined : Number(most)
  } catch {
    return undefined
  }
}
