import { spawnSync } from 'node:child_process'
import type { TestContext } from 'vitest'
import { atCleanup } from './cleanup.js'
import { tempDir } from './temp-dir.js'

/** Mounts an empty disk until cleanup. Skips the test where this user may not mount one. Returns its path. */
export function smallDisk(context: TestContext, mebibytes = 16): string {
  const path = tempDir()
  const { status } = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${mebibytes}m`, 'tmpfs', path])
  if (status !== 0) context.skip('this user may not mount a disk')
  atCleanup(() => void spawnSync('umount', ['-l', path]))
  return path
}
