import { readFile } from 'node:fs/promises'
import { Value } from 'typebox/value'
import {
  DEFAULT_PLANS,
  PLAN_NAMES,
  type Plan,
  type PlanName,
  PlanSchema,
  type PlanTable,
} from '../contract/databases/plans.js'
import { HomeportError } from '../contract/errors/errors.js'

/**
 * Loads the plans of this server: the built-in table, with rows replaced by those of the operator's file.
 * @param path of a JSON object from plan names to complete rows; `undefined` for the built-in table.
 * @throws HomeportError `invalid_config` with all problems of the file.
 */
export async function loadPlans(path: string | undefined): Promise<PlanTable> {
  if (path === undefined) return DEFAULT_PLANS
  const problems: string[] = []
  const rows = parsePlans(await readJson(path), problems)
  if (problems.length > 0) {
    throw new HomeportError('invalid_config', { problems: problems.map((problem) => `plansFile ${path}: ${problem}`) })
  }
  return { ...DEFAULT_PLANS, ...rows }
}

async function readJson(path: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(path, 'utf8'))
  } catch (error) {
    const reason = error instanceof SyntaxError ? 'is not valid JSON' : 'cannot be read'
    throw new HomeportError('invalid_config', { problems: [`plansFile ${path} ${reason}`] })
  }
}

function parsePlans(content: unknown, problems: string[]): Partial<Record<PlanName, Plan>> {
  if (typeof content !== 'object' || content === null || Array.isArray(content)) {
    problems.push('expected a JSON object from plan names to rows')
    return {}
  }
  const rows: Partial<Record<PlanName, Plan>> = {}
  for (const [name, row] of Object.entries(content)) {
    const plan = PLAN_NAMES.find((known) => known === name)
    if (plan === undefined) problems.push(`"${name}" is not a plan, expected one of ${PLAN_NAMES.join(', ')}`)
    else if (Value.Check(PlanSchema, row)) rows[plan] = row
    else problems.push(...rowProblems(name, row))
  }
  return rows
}

function rowProblems(name: string, row: unknown): string[] {
  return [...Value.Errors(PlanSchema, row)].map((error) => `${name}${error.instancePath} ${error.message}`)
}
