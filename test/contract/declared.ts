import { readdirSync } from 'node:fs'
import type { Endpoint } from '../../src/contract/endpoint.js'

const FOLDER = new URL('../../src/contract/', import.meta.url)

/** All endpoints that the files below `src/contract` export, alone or in a list. */
export async function declaredEndpoints(): Promise<readonly Endpoint[]> {
  const files = readdirSync(FOLDER, { recursive: true, encoding: 'utf8' }).filter(
    (name) => name.endsWith('.ts') && !name.endsWith('.test.ts'),
  )
  const modules = await Promise.all(files.map((name) => import(new URL(name, FOLDER).href) as Promise<object>))
  const values: unknown[] = modules.flatMap((exports) => Object.values(exports)).flat()
  return [...new Set(values.filter(isEndpoint))]
}

function isEndpoint(value: unknown): value is Endpoint {
  const parts = ['id', 'service', 'method', 'path', 'auth', 'success']
  return typeof value === 'object' && value !== null && parts.every((part) => part in value)
}
