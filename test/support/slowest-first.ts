import { relative } from 'node:path'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { LONG_KINDS } from './turns.js'

/**
 * Starts the slowest files first, so that the short ones keep both cores busy until the end of a run. By default, Vitest
 * sorts by the size of a file, which says little: a short test of a whole server takes a minute.
 */
export class SlowestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    return sorted.toSorted((one, other) => this.#rank(one) - this.#rank(other))
  }

  #rank({ moduleId }: TestSpecification): number {
    const path = relative(this.ctx.config.root, moduleId)
    const rank = LONG_KINDS.findIndex((kind) => kind.test(path))
    return rank < 0 ? LONG_KINDS.length : rank
  }
}
