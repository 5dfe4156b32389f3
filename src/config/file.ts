import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { codeOf } from '../base/index.js'
import { HomeportError } from '../contract/errors/errors.js'
import type { Sources } from './load.js'

/** Read when it is there and no other file is named. */
export const DEFAULT_FILE = 'homeport.config.json'

/**
 * Reads the configuration file. A file that was named has to exist; the default one may be missing.
 * @throws HomeportError `invalid_config` when it cannot be read or is not JSON.
 */
export function readConfigFile(named: string | undefined, workingDir: string): Sources['file'] {
  const path = resolve(workingDir, named ?? DEFAULT_FILE)
  try {
    return { path, content: JSON.parse(readFileSync(path, 'utf8')) }
  } catch (error) {
    if (named === undefined && isMissing(error)) return undefined
    throw new HomeportError('invalid_config', { problems: [`${path} cannot be used: ${reasonOf(error)}`] })
  }
}

const isMissing = (error: unknown): boolean => codeOf(error) === 'ENOENT'

/** The parser's own words may quote the file, and the file may hold a password. */
function reasonOf(error: unknown): string {
  if (error instanceof SyntaxError) return 'it is not valid JSON'
  return isMissing(error) ? 'there is no such file' : 'it cannot be read'
}
