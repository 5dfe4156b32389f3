import type { ServedCommand } from '../commands/command-table.js'

const EMPTY = Buffer.alloc(0)

/** Stateless commands that stand one after the other in one buffer and leave together. */
export class FrameRun {
  buffer: Buffer = EMPTY
  start = 0
  end = 0
  count = 0
  /** Whether the last of them is a write. */
  writes = false
  /** Whether any of them may write, PUBLISH and its like among them. */
  mayWrite = false

  /** Whether a frame stands right behind the run, or there is none. */
  isContinuedBy(buffer: Buffer, start: number): boolean {
    return this.count === 0 || (this.buffer === buffer && this.end === start)
  }

  /** Adds a frame that continues the run. */
  add(
    buffer: Buffer,
    start: number,
    end: number,
    { access, mayWrite }: Pick<ServedCommand, 'access' | 'mayWrite'>,
  ): void {
    if (this.count === 0) {
      this.buffer = buffer
      this.start = start
    }
    this.end = end
    this.writes = access === 'write'
    if (mayWrite) this.mayWrite = true
    this.count++
  }

  /** Forgets all of it. */
  clear(): void {
    this.count = 0
    this.mayWrite = false
    this.buffer = EMPTY
  }
}
