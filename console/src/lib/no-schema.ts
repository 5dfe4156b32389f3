/** Stands in the console for every schema of the contract, and for the library `typebox`: see `lean-contract.ts`. */
export const Type = { properties: {} }

export default Type
