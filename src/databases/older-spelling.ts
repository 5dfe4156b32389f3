import { type Static, Type } from 'typebox'
import { isObject } from '../base/index.js'
import { type CreateDatabaseBody, CreateDatabaseSchema } from '../contract/databases/databases.js'
import { REGIONS } from '../contract/databases/regions.js'
import { compileChecker } from '../http/index.js'

/** Fields that only the older spelling of a creation may set. */
const OlderFieldsSchema = Type.Object({
  auto_upgrade: Type.Optional(Type.Boolean()),
  prod_pack_enabled: Type.Optional(Type.Boolean()),
  // A server on one machine cannot keep the promise of `true`, so it refuses the value instead of ignoring it.
  consistent: Type.Optional(Type.Literal(false)),
})

/** Fields of the older spelling. */
type OlderFields = Static<typeof OlderFieldsSchema>

/** A creation request in the present spelling, with what the older one adds. */
export type CreationRequest = CreateDatabaseBody & Pick<OlderFields, 'auto_upgrade' | 'prod_pack_enabled'>

const checkBody: (value: unknown) => asserts value is CreateDatabaseBody = compileChecker(CreateDatabaseSchema, 'body')
const checkOlderFields: (value: unknown) => asserts value is OlderFields = compileChecker(OlderFieldsSchema, 'body')

/**
 * Checks the body of a creation. A body with `region: "global"` comes from a client older than the interface (the CLI, the
 * MCP server, the Terraform and Pulumi providers of the original): only then may `name` stand for `database_name`, the
 * platform follows from the primary region, and `auto_upgrade` and `prod_pack_enabled` count.
 * @throws HomeportError `invalid_request` with every problem.
 */
export function readCreation(body: unknown): CreationRequest {
  if (!isObject(body) || body.region !== 'global') {
    checkBody(body)
    return present(body)
  }
  const { name, ...rest } = body
  const platform = body.platform ?? platformOf(body.primary_region)
  const translated: unknown = { database_name: name, ...rest, platform }
  checkBody(translated)
  checkOlderFields(body)
  const { auto_upgrade, prod_pack_enabled } = body
  return { ...present(translated), auto_upgrade, prod_pack_enabled }
}

/** Keeps the known fields; other fields of a client have no meaning. */
function present(body: CreateDatabaseBody): CreateDatabaseBody {
  const { database_name, platform, primary_region, read_regions, plan, budget, eviction, tls, db_type } = body
  return { database_name, platform, primary_region, read_regions, plan, budget, eviction, tls, db_type }
}

/** An unknown region is reported by itself, so any platform will do for it. */
function platformOf(region: unknown): string {
  const known = Object.entries(REGIONS).find(([name]) => name === region)
  return known?.[1].platform ?? 'aws'
}
