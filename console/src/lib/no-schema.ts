/** In the console, this replaces every schema of the contract and the library `typebox`: see `lean-contract.ts`. */
export const Type = { properties: {} }

export default Type
