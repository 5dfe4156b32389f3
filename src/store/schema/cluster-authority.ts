/** The certificate authority of the link between nodes: one row. */
export interface ClusterAuthorityTable {
  place: 1
  /** PEM. */
  certificate: string
  /** PEM. */
  private_key: string
  created_at: number
}

/** Tables of the link between nodes. */
export interface ClusterAuthorityTables {
  cluster_authority: ClusterAuthorityTable
}
