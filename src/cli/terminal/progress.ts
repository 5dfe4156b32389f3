import type { Io } from '../io.js'
import { figure } from './figures.js'

/** Progress of work with a known total. */
export interface Progress {
  /** Shows the progress. */
  at(done: number, total: number): void
  /** Ends the line of the bar. */
  end(): void
}

const BAR_WIDTH = 30
/** Without a terminal, a line is printed each time the progress has grown by this much. */
const STEP_PERCENT = 10

/** A moving bar on a terminal, otherwise single lines. Always on stderr; prints nothing while the total is 0. */
export function progressOf(io: Io, what: string): Progress {
  const { at, end } = io.terminal?.err === true ? movingBar(io, what) : plainLines(io, what)
  return { at: (done, total) => (total > 0 ? at(done, total) : undefined), end }
}

const percentOf = (done: number, total: number): number => Math.floor((done * 100) / total)

function movingBar(io: Io, what: string): Progress {
  let isShown = false
  return {
    at(done, total) {
      const percent = percentOf(done, total)
      const filled = Math.min(BAR_WIDTH, Math.round((percent * BAR_WIDTH) / 100))
      const bar = '█'.repeat(filled) + '░'.repeat(BAR_WIDTH - filled)
      io.err(`\r\u001b[K${bar} ${String(percent).padStart(3)} %  ${figure(done)} of ${figure(total)} ${what}`)
      isShown = true
    },
    end() {
      if (isShown) io.err('\n')
    },
  }
}

function plainLines(io: Io, what: string): Progress {
  let next = 0
  return {
    at(done, total) {
      const percent = percentOf(done, total)
      if (percent < next) return
      next = percent - (percent % STEP_PERCENT) + STEP_PERCENT
      io.err(`${percent} %: ${figure(done)} of ${figure(total)} ${what}\n`)
    },
    end() {},
  }
}
