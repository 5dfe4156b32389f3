import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/**
 * Long test files take turns, because all files take more than twice the eight minutes that `npm test` may take. Each run
 * plays the unit tests, the files of `ALWAYS`, and one in `TURNS` of the other long files. `npm test` sets
 * `HOMEPORT_TEST_TURN`, which chooses them. Runs of chosen files, the commands of the campaigns (`npm run crash`, `npm run
 * damage` …) and `npm run test:all` leave out none.
 */
const TURNS = 6

/** The kinds of long test files, the longest first. All other files are unit tests. */
export const LONG_KINDS: readonly RegExp[] = [/^test\//, /\.integration\.test\.ts$/]

/** What every run tests: the rules of this project, the README, and the services with the packages of their clients. */
const ALWAYS = /^test\/(house|readme|support|e2e\/(queue|redis|workflow)\.test\.ts)/

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

const testFilesIn = (folder: string): string[] =>
  readdirSync(join(ROOT, folder), { encoding: 'utf8', recursive: true })
    .filter((path) => path.endsWith('.test.ts'))
    .map((path) => `${folder}/${path}`)

/** The files that take turns, by their path, so that each run plays some of every kind: neighbours test similar things. */
export const filesInTurn = (): readonly string[] =>
  ['src', 'test']
    .flatMap(testFilesIn)
    .filter((path) => LONG_KINDS.some((kind) => kind.test(path)) && !ALWAYS.test(path))
    .sort()

/** The number of this run; `undefined` for a run of all files. */
const turn = process.env.HOMEPORT_TEST_TURN === undefined ? undefined : Number(process.env.HOMEPORT_TEST_TURN)

/** Whether this run plays what is at a place (from 0) of a list of which each run plays one in `turns`. */
export const isInTurn = (place: number, turns: number): boolean => turn === undefined || place % turns === turn % turns

/** The test files that this run leaves out. */
export const filesOfOtherTurns = (): readonly string[] => filesInTurn().filter((_, place) => !isInTurn(place, TURNS))
