import { HomeportError } from '../../contract/errors/errors.js'
import { type Caller, type Reply, reply } from '../../http/index.js'
import type { BulkKindName } from '../../store/schema/bulk.js'
import type { PauseClock } from '../../workflow/transactions/runs-pause.js'
import type { Selector } from '../selector/selector.js'
import type { PauseSettings } from '../transactions/bulk-kinds.js'
import { previewAnswer } from './answers.js'
import { parseCancel, selectionOf } from './cancel.js'
import { answerLater, createAction, type RouteDeps } from './creation.js'

/** The kinds that pause and resume runs. */
export type PauseKind = Extract<BulkKindName, 'pauseRuns' | 'unpauseRuns'>

/** A request to pause or resume runs. */
export interface PauseRequest {
  readonly kind: PauseKind
  /** The selector of runs as in a cancel, with `reason`, `ratePerSecond` and `dryRun`. */
  readonly selection: object
  readonly pauseClock?: PauseClock | undefined
}

/** Starts an action that pauses or resumes runs. A dry run answers how many active runs match. */
export async function startPause(
  deps: RouteDeps,
  caller: Caller,
  { kind, selection, pauseClock }: PauseRequest,
  signal: AbortSignal,
): Promise<Reply> {
  const parsed = parseCancel(deps, selection, '')
  if (parsed.fenceUntil !== undefined) throw invalid('`fenceUntil` is for `cancelRuns` only.')
  if (kind === 'unpauseRuns' && pauseClock !== undefined) throw invalid('`pauseClock` is for `pauseRuns` only.')
  const { records, select } = selectionOf(deps, caller, changeable(kind, parsed), signal)
  if (parsed.mode === 'dryRun') return reply(200, await previewAnswer(deps.store, kind, await select()))
  const settings: PauseSettings = { clock: pauseClock ?? 'keep' }
  const { reason, ratePerSecond } = parsed
  const action = { kind, selector: records, settings: JSON.stringify(settings), reason, ratePerSecond }
  return answerLater(deps, await createAction(deps, caller, action, select))
}

/** Filters select only runs that the action can change. Runs that are named by id get an outcome each. */
function changeable(kind: PauseKind, { target, ...others }: Selector): Selector {
  if (target.kind === 'named') return { target, ...others }
  return { ...others, target: { kind: 'matching', filter: { ...target.filter, paused: kind === 'unpauseRuns' } } }
}

const invalid = (problem: string) => new HomeportError('invalid_request', { problem })
