/** Folders for Unix sockets, whose paths have to be short. */
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { codeOf } from '../base/index.js'
import { HomeportError } from '../contract/errors/errors.js'

/** Smallest limit of the supported systems (macOS: 104 with the closing zero), with a margin. */
export const SOCKET_PATH_LIMIT_BYTES = 100

/**
 * Folders for temporary files, the preferred one first: `TMPDIR` may name one that is gone, belongs to another user, or has a
 * long path.
 */
export const TEMPORARY_FOLDERS = (): readonly string[] => [tmpdir(), '/tmp', '/dev/shm']

/**
 * Makes a folder for sockets below the first folder where that is possible.
 * @param longestName name of a socket below such a folder.
 * @param make returns the path of the new folder.
 * @throws HomeportError `no_temporary_folder`
 */
export async function firstUsableFolder(
  folders: readonly string[],
  longestName: string,
  make: (folder: string) => Promise<string>,
): Promise<string> {
  const problems: string[] = []
  for (const folder of folders) {
    if (Buffer.byteLength(join(folder, longestName)) > SOCKET_PATH_LIMIT_BYTES) {
      problems.push(`${folder} has too long a path for sockets`)
      continue
    }
    try {
      return await make(folder)
    } catch (error) {
      problems.push(`${folder}: ${codeOf(error) || String(error)}`)
    }
  }
  throw new HomeportError('no_temporary_folder', { tried: problems.join('; ') })
}
