import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { HomeportError } from '../../contract/errors/errors.js'
import { PendingReplies } from './pending-replies.js'
import type { ReplySink } from './reply-sink.js'

/** Records what it gets: whole replies of one letter each, and `!` for each that failed, `?` after its beginning. */
class Recorder implements ReplySink {
  log = ''

  deliver(chunk: Buffer, start: number, end: number): void {
    this.log += chunk.toString('latin1', start, end)
  }

  deliverHeld(pieces: readonly Buffer[]): void {
    this.log += Buffer.concat(pieces).toString('latin1')
  }

  fail(count: number, _error: HomeportError, partial: boolean): void {
    this.log += (partial ? '?' : '!') + '!'.repeat(count - 1)
  }
}

/** A step: the client `who` expects replies or gets a note or a substitute, or the engine answers. */
type Step =
  | { readonly kind: 'expect'; readonly who: number; readonly count: number }
  | { readonly kind: 'note' | 'substitute'; readonly who: number }
  | { readonly kind: 'answer'; readonly how: 'whole' | 'cut' | 'held'; readonly count: number }

const who = fc.nat({ max: 3 })
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ kind: fc.constant('expect' as const), who, count: fc.integer({ min: 1, max: 5 }) }),
  fc.record({ kind: fc.constantFrom('note' as const, 'substitute' as const), who }),
  fc.record({
    kind: fc.constant('answer' as const),
    how: fc.constantFrom('whole' as const, 'cut' as const, 'held' as const),
    count: fc.integer({ min: 1, max: 12 }),
  }),
)

/** The expected record of each client: `e` an engine's reply, `n` a note, `s` a substitute, `!` a failure. */
class Model {
  readonly seen = ['', '', '', '']
  #queue: { who: number; letter: 'e' | 'n' | 's' }[] = []

  add(client: number, letter: 'e' | 'n' | 's', count: number): void {
    for (let i = 0; i < count; i++) this.#queue.push({ who: client, letter })
    this.#settleNotes()
  }

  /** @returns whether an engine's reply was pending */
  answer(): boolean {
    const next = this.#queue.shift()
    if (!next) return false
    this.seen[next.who] += next.letter
    this.#settleNotes()
    return true
  }

  /** All but the last `kept` replies fail. `partial`: the beginning of the first one was delivered, if it is no substitute. */
  fail(kept: number, partial: boolean): void {
    let first = partial
    for (let lost = this.pending - kept; lost > 0; lost--) {
      const next = this.#queue.shift()
      if (next) this.seen[next.who] += first && next.letter === 'e' ? '?' : '!'
      first = false
      this.#settleNotes()
    }
  }

  get pending(): number {
    return this.#queue.filter(({ letter }) => letter !== 'n').length
  }

  #settleNotes(): void {
    while (this.#queue[0]?.letter === 'n') {
      const note = this.#queue.shift()
      if (note) this.seen[note.who] += 'n'
    }
  }
}

function apply(pending: PendingReplies, model: Model, sinks: readonly Recorder[], action: Step): void {
  if (action.kind === 'answer') {
    for (let i = 0; i < action.count && model.answer(); i++) answer(pending, action.how)
    return
  }
  const sink = sinks[action.who]
  if (!sink) return
  if (action.kind === 'expect') pending.expect(sink, action.count)
  else pending[action.kind](sink, Buffer.from(action.kind.slice(0, 1)))
  model.add(
    action.who,
    action.kind === 'expect' ? 'e' : action.kind === 'note' ? 'n' : 's',
    action.kind === 'expect' ? action.count : 1,
  )
}

function answer(pending: PendingReplies, how: 'whole' | 'cut' | 'held'): void {
  const bytes = Buffer.from('e')
  if (how === 'held') pending.deliverHeld([bytes, Buffer.alloc(0)])
  else pending.deliver(bytes, 0, 1, how === 'whole' ? 1 : 0)
  if (how === 'cut') pending.deliver(bytes, 1, 1, 1)
}

describe('pending replies', () => {
  it('arrive once and in order, with notes and substitutes in place, before and after the loss of the engine', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), fc.nat({ max: 20 }), fc.boolean(), (steps, kept, partial) => {
        const pending = new PendingReplies({ error: () => undefined })
        const model = new Model()
        const sinks = [new Recorder(), new Recorder(), new Recorder(), new Recorder()]
        for (const action of steps) apply(pending, model, sinks, action)
        model.fail(kept, partial)
        pending.fail(new HomeportError('engine_lost', {}), partial, kept)
        expect(sinks.map(({ log }) => log)).toEqual(model.seen)
        apply(pending, model, sinks, { kind: 'answer', how: 'whole', count: model.pending })
        expect(sinks.map(({ log }) => log)).toEqual(model.seen)
        expect([pending.isEmpty, pending.count, pending.headSink]).toEqual([true, 0, undefined])
      }),
    )
  })

  it('keep their order when many more are pending than ever before', () => {
    const pending = new PendingReplies({ error: () => undefined })
    const [model, sinks] = [new Model(), [new Recorder(), new Recorder()]]
    const step = (action: Step): void => apply(pending, model, sinks, action)
    for (let round = 0; round < 150; round++) {
      for (const who of [0, 1]) {
        step({ kind: 'expect', who, count: 1 })
        step({ kind: round % 2 ? 'note' : 'substitute', who })
      }
      step({ kind: 'answer', how: 'whole', count: 1 })
    }
    step({ kind: 'answer', how: 'whole', count: model.pending })
    expect(sinks.map(({ log }) => log)).toEqual(model.seen.slice(0, 2))
  })

  it('all fail even if one sink throws', () => {
    const faults: unknown[] = []
    const pending = new PendingReplies({ error: (_event, fields) => faults.push('error' in fields && fields.error) })
    const defect = new Error('a defect')
    const broken: ReplySink = {
      deliver: () => undefined,
      fail: () => {
        throw defect
      },
    }
    const sinks = [new Recorder(), broken, new Recorder()]
    for (const sink of sinks) pending.expect(sink, 1)
    pending.fail(new HomeportError('engine_lost', {}), false)
    expect(faults).toEqual([defect])
    expect(sinks.map((sink) => sink instanceof Recorder && sink.log.length)).toEqual([1, false, 1])
    expect(pending.isEmpty).toBe(true)
  })
})
