import type { Flag } from './accounts.js'
import type { Assigned } from './assigned.js'

/** One incarnation of one process of a node. */
export interface NodesTable {
  incarnation: Assigned<number>
  name: string
  /** Id of its data directory. */
  dir: string
  /** Host and port of its peer link. */
  advertise: string
  version: string
  /** JSON object: digests of the options that must agree, by name. */
  config: string
  state: 'live' | 'draining' | 'dead' | 'left'
  /** Whether everything in the process has started, so that it may own partitions. */
  is_open: Flag
  /** Grows with every beat. */
  beat: number
  /** Version of the last announcement that it has handled. */
  seen: number
  started_at: number
  /** Time of its last beat by its own clock. Shown to people only; no decision depends on it. */
  beat_at: number
}

/** Which schemas an incarnation of a node works with. Nodes before migration 47 have none. */
export interface NodeGenerationsTable {
  incarnation: number
  generation: number
  schema_from: number
  schema_to: number
}

/** Which region an incarnation of a node serves. Nodes before migration 53 have none. */
export interface NodeRegionsTable {
  incarnation: number
  /** NULL: all regions. */
  region: string | null
}

/** The applied migrations. */
export interface SchemaMigrationsTable {
  number: number
  name: string
  breaking: number
  /** The oldest generation that works with a breaking one; NULL: only the one that has it. */
  works_from: number | null
}

/** Which node sends the messages of a partition. */
export interface PartitionsTable {
  partition: number
  /** Incarnation; NULL before the first. */
  owner: number | null
  /** Grows with every change of the owner. */
  epoch: number
  /** JSON: notes from the previous owner; NULL when that one was killed. */
  notes: string | null
}

/** A lease. `leader`: held by the leader. `announcements`: its epoch is the version of the last announcement. */
export interface LeasesTable {
  name: 'leader' | 'announcements'
  /** Incarnation. */
  owner: number | null
  epoch: number
}

/** An announcement that is stored for the nodes that did not acknowledge it. */
export interface AnnouncementsTable {
  version: number
  /** Incarnation. */
  sender: number
  topic: string
  /** JSON. */
  payload: string
  at: number
}

/** Tables of the cluster. */
export interface ClusterTables {
  nodes: NodesTable
  node_generations: NodeGenerationsTable
  node_regions: NodeRegionsTable
  schema_migrations: SchemaMigrationsTable
  partitions: PartitionsTable
  leases: LeasesTable
  announcements: AnnouncementsTable
}

/** The generation of a node, and the generations of schemas that it works with. */
export interface SchemaRange {
  readonly generation: number
  /** The oldest and the newest generation of a schema that it works with. */
  readonly schema_from: number
  readonly schema_to: number
}

/** The range of nodes that store none: versions before migration 47. */
export const FIRST_RANGE: SchemaRange = { generation: 1, schema_from: 1, schema_to: 2 }

/** Whether nodes of two generations may run at the same time: each works with the schema of the newer one. */
export function canRunBeside(one: SchemaRange, other: SchemaRange): boolean {
  return other.generation <= one.schema_to && one.generation <= other.schema_to
}
