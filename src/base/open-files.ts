import { readFileSync } from 'node:fs'

/** Most files, including connections, that this process may have open; `undefined` where the system does not report it. */
export function maxOpenFiles(): number | undefined {
  try {
    const most = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1]
    return most === undefined ? undefined : Number(most)
  } catch {
    return undefined
  }
}
