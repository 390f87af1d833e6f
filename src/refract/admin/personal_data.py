"""The personal data hooks of all features, for exports and the deletion of accounts."""

from refract.library import personal_data as library_leaving
from refract.links import personal_data as link_leaving
from refract.lists import personal_data as list_leaving
from refract.reports import personal_data as report_leaving

PERSONAL_DATA_HOOKS = (
    report_leaving.PERSONAL_DATA_HOOK,
    link_leaving.PERSONAL_DATA_HOOK,
    link_leaving.INVITATION_DATA_HOOK,
    list_leaving.PERSONAL_DATA_HOOK,
    library_leaving.PERSONAL_DATA,
)
