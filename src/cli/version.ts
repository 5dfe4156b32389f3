import { readFileSync } from 'node:fs'
import { type Static, Type } from 'typebox'
import { Value } from 'typebox/value'

const PackageSchema = Type.Object({ version: Type.String() })

/** The version of Homeport, from its package.json, which lies above both `src/` and `dist/`. */
export function version(): string {
  const file: unknown = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
  const { version }: Static<typeof PackageSchema> = Value.Parse(PackageSchema, file)
  return version
}
