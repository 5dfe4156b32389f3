import type { DatabasesOptions } from './deps.js'
import type { ServingDirectory } from './directory.js'
import type { Sleep } from './sleep/index.js'

/** What every part of this room that changes databases works with. */
export interface ChangeDeps extends DatabasesOptions {
  readonly directory: ServingDirectory
  readonly sleep: Pick<Sleep, 'wake' | 'adopt' | 'during' | 'isAwake' | 'forget'>
}
