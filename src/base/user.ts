import { homedir } from 'node:os'

/** The numeric id of the user that runs this process. Unlike `os.userInfo()`, it works for a user without a name. */
export function userId(): number {
  return process.getuid?.() ?? -1
}

/**
 * The home directory of the user. A container or a service may run as a user whom the system does not know; then it is a
 * directory that does not exist, so nothing is read from a place that somebody else could fill.
 */
export function homeOfUser(env: Readonly<Record<string, string | undefined>>): string {
  try {
    return env.HOME || homedir()
  } catch {
    return '/nonexistent'
  }
}
