/** The name of a rule as people read it: `dead letter`. Absent: a silence of all rules. */
export const ruleName = (kind = 'all_rules'): string => kind.replaceAll('_', ' ')
