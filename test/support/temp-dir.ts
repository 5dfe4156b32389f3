import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { atCleanup } from './cleanup.js'
import { onFailedExit } from './exit-guard.js'

/** A new empty directory (mode 0700) that is deleted at cleanup. The path is short enough for Unix sockets. */
export function tempDir(prefix = 'hp-'): string {
  const path = mkdtempSync(join(tmpdir(), prefix))
  const remove = () => rmSync(path, { recursive: true, force: true, maxRetries: 5 })
  onFailedExit.add(remove)
  atCleanup(remove)
  return path
}
