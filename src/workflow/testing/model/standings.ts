import { dueTime, isParkedTime, movedTo } from '../../../queue/transactions/messages-parked.js'
import type { Store } from '../../../store/index.js'
import type { PauseClock } from '../../transactions/runs-pause.js'
import type { RunRow } from '../../transactions/runs-rows.js'
import type { UndoClock } from '../../transactions/runs-undo.js'
import { readStandings, type StandingRows } from './census.js'
import type { Knowledge } from './knowledge.js'

/** Compares lists, messages and waits of runs before and after an action that may change nothing but due times. */

/** An action that moves due times. `at` and `since` in Unix milliseconds. */
export type Shift =
  | { readonly by: 'undo'; readonly clock: UndoClock; readonly since: number; readonly at: number }
  | { readonly by: 'resume'; readonly clock: PauseClock; readonly since: number; readonly at: number }
  | { readonly by: 'nothing' }

/** Reads the lists, messages and waits of runs, by `runs.seq`. */
export async function standingsOf(store: Store, runs: readonly RunRow[]): Promise<Map<number, StandingRows>> {
  const rows = await store.run(readStandings, { seqs: runs.map(({ seq }) => seq) })
  return new Map(
    runs.map(({ seq }) => [
      seq,
      {
        elements: rows.elements.filter(({ run_seq }) => run_seq === seq),
        messages: rows.messages.filter(({ group_key }) => group_key === seq),
        waits: rows.waits.filter(({ run_seq }) => run_seq === seq),
      },
    ]),
  )
}

/** Throws unless all messages of a paused run are parked. */
export function checkParked({ run_id: runId }: RunRow, { messages }: StandingRows): void {
  const loose = messages.find(({ next_at }) => !isParkedTime(next_at))
  if (loose) throw new Error(`${runId} is paused, and ${loose.message_id} is not parked`)
}

/**
 * Throws unless a run has the same list, messages and waits as before, with due times moved as the action says. The end of
 * an invoked run may have been added.
 */
export function checkStanding(run: RunRow, before: StandingRows, after: StandingRows, shift: Shift): void {
  const fail: Fail = (what) => {
    throw new Error(`${run.run_id} does not stand where it stood (${shift.by}): ${what}`)
  }
  const kept = after.elements.slice(0, before.elements.length)
  if (JSON.stringify(kept) !== JSON.stringify(before.elements)) fail('its list is another one')
  const deadlines = new Set(before.waits.map(({ message_id }) => message_id))
  for (const message of before.messages) {
    const now = after.messages.find(({ message_id }) => message_id === message.message_id)
    if (!now) throw new Error(`${run.run_id} does not stand where it stood: ${message.message_id} is gone`)
    const dueAt = dueAfter(shift, message, deadlines.has(message.message_id))
    checkMessage(message, now, { dueAt, mayBeParked: run.paused_at !== null && shift.by !== 'resume', shift, fail })
  }
  checkWaits(before, after, shift, fail)
  const added = after.elements.slice(before.elements.length).map(({ message_id }) => message_id)
  const known = new Set([...added, ...before.messages.map(({ message_id }) => message_id)])
  for (const { message_id } of after.messages) if (!known.has(message_id)) fail(`${message_id} is new`)
}

type Undo = Extract<Shift, { by: 'undo' }>

/** The expected list, messages and waits of a run right after an undo. */
export function undone({ elements, messages, waits }: StandingRows, shift: Undo): StandingRows {
  const deadlines = new Set(waits.map(({ message_id }) => message_id))
  return {
    elements,
    messages: messages.map((message) => {
      const isDeadline = deadlines.has(message.message_id)
      const isMadeAgain = shift.clock === 'now' && !isDeadline
      const next_at = movedTo(dueAfter(shift, message, isDeadline), message.next_at)
      return { ...message, next_at, created_at: isMadeAgain ? shift.at : message.created_at }
    }),
    waits: waits.map((wait) => {
      const { deadline: next_at, created_at } = wait
      return { ...wait, deadline: dueAfter(shift, { next_at, created_at }, true) }
    }),
  }
}

type Fail = (what: string) => never
type Message = StandingRows['messages'][number]

interface Expected {
  readonly dueAt: number
  readonly mayBeParked: boolean
  readonly shift: Shift
  readonly fail: Fail
}

function checkMessage(before: Message, now: Message, { dueAt, mayBeParked, shift, fail }: Expected): void {
  const { message_id: id, next_at: nextAt } = now
  const [was, is] = [before, now].map((one) => JSON.stringify(fixedOf(one, shift)))
  if (was !== is) fail(`${id} was ${was} and is ${is}`)
  if (dueTime(nextAt) !== dueAt) fail(`${id} was due at ${dueTime(before.next_at)}, is at ${nextAt}, not ${dueAt}`)
  if (nextAt !== dueTime(nextAt) && !mayBeParked) fail(`${id} is parked`)
}

function checkWaits(before: StandingRows, after: StandingRows, shift: Shift, fail: Fail): void {
  for (const wait of before.waits) {
    const deadline = dueAfter(shift, { next_at: wait.deadline, created_at: wait.created_at }, true)
    const isThere = after.waits.some((now) => JSON.stringify(now) === JSON.stringify({ ...wait, deadline }))
    if (!isThere) fail(`the wait ${JSON.stringify(wait)} became ${JSON.stringify(after.waits)}`)
  }
  if (after.waits.length !== before.waits.length) fail('it has other waits')
}

/** The columns that no shift changes. An undo with the clock `now` may change the creation time of a message. */
function fixedOf({ next_at: _, seq: _seq, created_at, ...fixed }: Message, shift: Shift) {
  return shift.by === 'undo' && shift.clock === 'now' ? fixed : { ...fixed, created_at }
}

/** When something is due after the shift. */
function dueAfter(
  shift: Shift,
  { next_at, created_at }: { readonly next_at: number; readonly created_at: number },
  isDeadline: boolean,
): number {
  const due = dueTime(next_at)
  switch (shift.by) {
    case 'nothing':
      return due
    case 'undo':
      if (shift.clock === 'now') return isDeadline ? due : shift.at
      if (shift.clock === 'original') return due
      return due + Math.max(0, shift.at - shift.since)
    case 'resume': {
      if (shift.clock === 'keep') return due
      const heldSince = Math.min(Math.max(created_at, Math.min(shift.since, shift.at)), shift.at)
      return due + shift.at - heldSince
    }
  }
}

/** Checks that an event from during a pause is due at the resume, regardless of the clock of the pause. */
export function checkReleased(known: Knowledge, after: StandingRows, at: number): void {
  for (const { message_id: id, next_at } of after.messages) {
    const came = known.releasedInPause.get(id)
    known.releasedInPause.delete(id)
    if (came !== undefined && next_at > Math.max(came, at)) throw new Error(`the event of ${id} waits after the resume`)
  }
}

/** Moves the expected due times of the messages and waits of a run. */
export function noteMoved(known: Knowledge, before: StandingRows, after: StandingRows): void {
  for (const { message_id: id, next_at } of after.messages) {
    const was = before.messages.find(({ message_id }) => message_id === id)
    const moved = was ? dueTime(next_at) - dueTime(was.next_at) : 0
    const [until, retry] = [known.asleep.get(id), known.retries.get(id)]
    if (moved > 0) known.released.delete(id)
    if (until !== undefined) known.asleep.set(id, until + moved)
    if (retry) known.retries.set(id, { ...retry, nextAt: retry.nextAt + moved })
  }
  for (const { message_id: id, deadline } of after.waits) {
    const wait = known.waits.get(id)
    if (wait) known.waits.set(id, { ...wait, until: deadline })
  }
}
