import { relative } from 'node:path'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** The kinds of test files by how long one takes, the longest first; what matches none is a unit test. */
const LONG = [/^test\//, /\.integration\.test\.ts$/]

/**
 * Starts the files that take longest first, so that the short ones fill both cores to the end of a run. Vitest goes by the
 * size of a file, which tells little: a short script of a whole server takes a minute.
 */
export class SlowestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    return sorted.toSorted((one, other) => this.#rank(one) - this.#rank(other))
  }

  #rank({ moduleId }: TestSpecification): number {
    const path = relative(this.ctx.config.root, moduleId)
    const rank = LONG.findIndex((kind) => kind.test(path))
    return rank < 0 ? LONG.length : rank
  }
}
