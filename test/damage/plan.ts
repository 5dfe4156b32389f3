import { randomFrom } from '../../src/base/testing/random.js'
import { DAMAGES, type DamageKind, type Ending, FILE_KINDS, FOLDER_KINDS, filesIn, foldersIn, kindOf } from './files.js'
import type { Golden } from './golden.js'

/** One damage to try. */
export interface Trial {
  /** Chooses the place; the same seed chooses the same place. */
  readonly seed: number
  /** What is damaged: a kind of file or directory, or the whole store. */
  readonly target: string
  readonly damage: DamageKind | 'older copy'
  readonly ending: Ending
  /** Relative to the data directory. */
  readonly path: string
  readonly swapWith: string | undefined
}

/** The number of trials of a plan. */
export interface PlanOptions {
  readonly seed: number
  /** Trials per kind of file and kind of damage at a random place. */
  readonly each: number
  /** Additional flips of single bits in the store and its log, which have most of the bytes. */
  readonly flips: number
}

/** Damage at a random place, which needs several trials. */
const PLACED: readonly DamageKind[] = ['truncate', 'zero', 'flip']

function pick<Item>(items: readonly Item[], random: () => number): Item | undefined {
  return items[Math.floor(random() * items.length)]
}

/** Every kind of file with every damage, and every kind of directory deleted and replaced by a file. */
export function planTrials(golden: Golden, { seed, each, flips }: PlanOptions): Trial[] {
  const trials: Trial[] = []
  const add = (target: string, damage: DamageKind, ending: Ending, candidates: readonly string[]): void => {
    const own = seed + trials.length
    const random = randomFrom(own)
    const path = pick(candidates, random)
    if (path === undefined) return
    trials.push({ seed: own, target, damage, ending, path, swapWith: swapFor(golden, ending, path, random) })
  }
  for (const { name, ending } of FILE_KINDS.filter((kind) => golden.endings.includes(kind.ending))) {
    const files = filesOf(golden, ending, name)
    for (const damage of DAMAGES) {
      for (let time = 0; time < (PLACED.includes(damage) ? each : 1); time++) add(name, damage, ending, files)
    }
  }
  for (const name of FOLDER_KINDS) {
    const folders = foldersIn(golden.copies.stopped).filter((path) => FOLDERS[name].test(path))
    add(name, 'delete', 'stopped', folders)
    add(name, 'directory', 'stopped', folders)
  }
  for (let flip = 0; flip < flips; flip++) {
    const [name, ending] = flip % 4 === 3 ? (['store log', 'killed'] as const) : (['store', 'stopped'] as const)
    if (golden.endings.includes(ending)) add(name, 'flip', ending, filesOf(golden, ending, name))
  }
  const last = seed + trials.length
  trials.push({
    seed: last,
    target: 'store',
    damage: 'older copy',
    ending: 'stopped',
    path: 'homeport.sqlite',
    swapWith: undefined,
  })
  return trials
}

const FOLDERS: Readonly<Record<(typeof FOLDER_KINDS)[number], RegExp>> = {
  database: /^databases\/[^/]+$/,
  region: /^databases\/[^/]+\/[^/]+$/,
  databases: /^databases$/,
  'backups of a database': /^backups\/[^/]+$/,
  backups: /^backups$/,
  tls: /^tls$/,
  run: /^run$/,
}

const filesOf = (golden: Golden, ending: Ending, name: string): string[] =>
  filesIn(golden.copies[ending]).filter((path) => kindOf(path)?.name === name)

/** Another file of the same kind, else any file that must not be deleted. */
function swapFor(golden: Golden, ending: Ending, path: string, random: () => number): string | undefined {
  const others = filesIn(golden.copies[ending]).filter((other) => other !== path)
  const alike = others.filter((other) => kindOf(other)?.name === kindOf(path)?.name)
  return pick(alike.length > 0 ? alike : others.filter((other) => kindOf(other)?.custody === 'kept'), random)
}
