import type { Random } from './random.js'

/**
 * Programs of simulated endpoints: what each does is data in the payload, so every delivery can be answered from the
 * delivered list alone, as an SDK does.
 */

/** One step of a program. */
export type StepKind = 'run' | 'sleep' | 'wait' | 'call' | 'invoke' | 'cancel'

/** Steps that run side by side; a block of one is an ordinary step. */
export type Block = readonly StepKind[]

/** What an endpoint does, block after block. */
export type Program = readonly Block[]

/** A step as it stands in a list. */
export interface ListedStep {
  readonly stepId: number
  readonly targetStep?: number
  readonly stepType: string
  readonly concurrent?: number
  readonly out?: string
}

/** What an endpoint does on a delivery. */
export type Move =
  | { readonly kind: 'nothing' }
  | { readonly kind: 'plan'; readonly firstId: number; readonly block: Block }
  | { readonly kind: 'do'; readonly step: StepKind; readonly stepId: number; readonly concurrent: number }
  | { readonly kind: 'finish'; readonly results: readonly (string | null)[] }

/** So many programs invoke each other in a row. */
const DEEPEST = 3

/** Makes up a program. @param depth how many programs have invoked each other down to this one. */
export function randomProgram(random: Random, depth = 0): Program {
  const kinds: StepKind[] = ['run', 'run', 'sleep', 'wait', 'call', ...(depth < DEEPEST ? (['invoke'] as const) : [])]
  const step = (): StepKind => (random.chance(0.02) ? 'cancel' : (random.pick(kinds) ?? 'run'))
  return Array.from({ length: 1 + random.below(3) }, () =>
    Array.from({ length: random.chance(0.4) ? 2 + random.below(2) : 1 }, step),
  )
}

/** What the program does when it gets this list (reference workflow 4.5 to 4.7). */
export function moveOf(program: Program, list: readonly ListedStep[]): Move {
  const last = list.at(-1)
  if (last && repeats(list.slice(0, -1), last)) return { kind: 'nothing' }
  if (last?.targetStep !== undefined) return branchMove(program, last.targetStep)
  const results = firstResults(list)
  let firstId = 1
  for (const block of program) {
    const ids = block.map((_, index) => firstId + index)
    const move = moveInBlock(block, firstId, ids, list, results)
    if (move) return move
    firstId += block.length
  }
  return { kind: 'finish', results: [...results.keys()].sort((a, b) => a - b).map((id) => results.get(id) ?? null) }
}

function moveInBlock(
  block: Block,
  firstId: number,
  ids: readonly number[],
  list: readonly ListedStep[],
  results: ReadonlyMap<number, string | undefined>,
): Move | undefined {
  if (ids.every((id) => results.has(id))) return undefined
  const [step] = block
  if (block.length === 1 && step) return { kind: 'do', step, stepId: firstId, concurrent: 1 }
  const planned = list.some(({ targetStep }) => targetStep === firstId)
  return planned ? { kind: 'nothing' } : { kind: 'plan', firstId, block }
}

function branchMove(program: Program, stepId: number): Move {
  let firstId = 1
  for (const block of program) {
    const step = block[stepId - firstId]
    if (step && stepId >= firstId) return { kind: 'do', step, stepId, concurrent: block.length }
    firstId += block.length
  }
  throw new Error(`the program has no step ${stepId}`)
}

function repeats(before: readonly ListedStep[], last: ListedStep): boolean {
  return before.some(({ stepId, targetStep }) => stepId === last.stepId && targetStep === last.targetStep)
}

/** Of every step its first result; later ones of the same step are dropped. */
export function firstResults(list: readonly ListedStep[]): Map<number, string | undefined> {
  const results = new Map<number, string | undefined>()
  for (const { stepId, targetStep, out } of list) {
    if (targetStep === undefined && !results.has(stepId)) results.set(stepId, out)
  }
  return results
}
