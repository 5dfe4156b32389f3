import { type Clock, systemClock } from '../../base/index.js'
import type { CopyProgress } from '../../store/maintenance.js'
import type { Io } from '../io.js'
import { duration, figure } from '../terminal/figures.js'

const BAR_WIDTH = 30
/** Without a terminal, a line is printed each time the progress has grown by this much. */
const STEP_PERCENT = 10
/** The bar moves this often. */
const REDRAW_MS = 100
/** The time left is not estimated before this time, because the first figures are unreliable. */
const SETTLED_MS = 2_000

const VERBS = { copy: 'copied', compare: 'compared' } as const

/** Shows how far a copy is, with rows per second and the time left, on stderr. */
export function copyProgressOf(io: Io, clock: Clock = systemClock): { at(progress: CopyProgress): void; end(): void } {
  const isBar = io.terminal?.err === true
  let phase: CopyProgress['phase'] | undefined
  let from = { atMs: 0, rows: 0 }
  let next = 0
  let drawnMs = 0
  return {
    at(progress) {
      const now = clock.now()
      if (progress.phase !== phase) {
        if (isBar && phase) io.err('\n')
        phase = progress.phase
        from = { atMs: now, rows: progress.rows }
        next = 0
        drawnMs = 0
      }
      const percent = percentOf(progress)
      const line = `${figure(progress.rows)} of ${figure(progress.total)} rows ${VERBS[progress.phase]}${paceOf(progress, from, now)}`
      if (isBar && (now - drawnMs >= REDRAW_MS || percent === 100)) {
        drawnMs = now
        const filled = Math.round((percent * BAR_WIDTH) / 100)
        io.err(
          `\r\u001b[K${'█'.repeat(filled)}${'░'.repeat(BAR_WIDTH - filled)} ${String(percent).padStart(3)} %  ${line}`,
        )
      } else if (!isBar && percent >= next) {
        next = percent - (percent % STEP_PERCENT) + STEP_PERCENT
        io.err(`${percent} %: ${line}\n`)
      }
    },
    end() {
      if (isBar && phase) io.err('\n')
    },
  }
}

const percentOf = ({ rows, total }: CopyProgress): number =>
  total === 0 ? 100 : Math.min(100, Math.floor((rows * 100) / total))

/** `, 31,000 rows/s, 2m10s left`. */
function paceOf(
  { rows, total }: CopyProgress,
  from: { readonly atMs: number; readonly rows: number },
  now: number,
): string {
  const took = now - from.atMs
  const done = rows - from.rows
  if (took < SETTLED_MS || done <= 0) return ''
  const perSecond = (done * 1_000) / took
  const left = rows < total ? `, ${duration(((total - rows) * 1_000) / perSecond)} left` : ''
  return `, ${figure(Math.round(perSecond))} rows/s${left}`
}
