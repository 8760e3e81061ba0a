"""A schema → another one that says it in words which more clients know.

Pure functions: nothing is changed in place, nothing raises, whatever it is given. The rules mend with them, and
`lowering` is made of them.
"""

from longshore.schema.rewriting.combinators import without_root_combinators as without_root_combinators
from longshore.schema.rewriting.dialects import modernised as modernised
from longshore.schema.rewriting.plain import with_items as with_items
from longshore.schema.rewriting.plain import with_object_root as with_object_root
from longshore.schema.rewriting.plain import with_properties as with_properties
from longshore.schema.rewriting.plain import without_booleans as without_booleans
from longshore.schema.rewriting.references import inlined as inlined
